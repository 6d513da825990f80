"""What stands in the place of something of PySpark's, and can be taken away again."""


class Replacements:
    """Replaced attributes of classes, in the order in which they were replaced."""

    def __init__(self):
        self._replaced = []

    def replace(self, owner, name, new):
        """Put something in the place of a class's own attribute."""
        self._replaced.append((owner, name, vars(owner)[name], new))
        setattr(owner, name, new)

    def undo(self):
        """Put back what is still replaced by ours; what others have put over it may call ours."""
        while self._replaced:
            owner, name, original, new = self._replaced.pop()
            if vars(owner).get(name) is new:
                setattr(owner, name, original)
