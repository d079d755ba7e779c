"""The extension points of a plugin in another process: questions, answers, and what stays of them."""
