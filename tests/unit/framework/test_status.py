"""What becomes of an error that is kept as a status."""

from berth.framework.status import PluginError, failed


def raised_in_turn(first, second):
    """Both errors, each raised while the other was handled: the causes form a circle."""
    for error, cause in ((first, second), (second, first)):
        try:
            raise error from cause
        except ValueError:
            pass
    return first


def test_an_error_that_is_its_own_cause():
    """It is left without frames, as all of its causes, however they lead to each other."""
    first, second = ValueError("one"), ValueError("other")
    status = failed(raised_in_turn(first, second))

    assert status.error is first
    assert (None, None) == (first.__traceback__, second.__traceback__)


def test_what_was_handled_meanwhile_loses_its_frames_too():
    """An error without a cause of its own has the one that it followed."""
    cause, context = ValueError("cause"), ValueError("context")
    try:
        try:
            raise context
        except ValueError:
            raise PluginError("later") from cause
    except PluginError as error:
        failed(error)

    assert (None, None) == (cause.__traceback__, context.__traceback__)
