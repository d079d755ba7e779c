"""What can be wrong with a data set; the caller prints the one line and exits with code 2.

DatasetError
├── UnreadableSourceError   a path that is missing, closed to us, or holds nothing known
├── BrokenLineError         a CSV line: file, line, column, what was found, what to do
└── BrokenDocumentError     a Kubernetes document: file, document, field, what was found, what to do
"""


class DatasetError(Exception):
    """A data set cannot be loaded; the text is one line for the user. Nothing was loaded."""


class UnreadableSourceError(DatasetError):
    """A path gives no data at all."""


class BrokenLineError(DatasetError):
    """One line of a CSV file is not what the format allows."""

    def __init__(self, file: str, line: int, where: str, found: str, remedy: str) -> None:
        super().__init__(f"{file}:{line}: {where}: found {found}; {remedy}")
        self.file, self.line = file, line


class BrokenDocumentError(DatasetError):
    """One document of a Kubernetes file is not an object that can be created."""

    def __init__(self, file: str, document: int, field: str, found: str, remedy: str) -> None:
        super().__init__(f"{file}: document {document}: {field}: found {found}; {remedy}")
        self.file, self.document, self.field = file, document, field


def shown(value: object, limit: int = 60) -> str:
    """Quote a value for a one-line message, shortened where it is long."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
