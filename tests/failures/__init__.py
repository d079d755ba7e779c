"""Each way in which a part of Berth can fail, where that is reported, and the tests that hold it."""
