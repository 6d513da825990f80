"""``airflow sparklineage resend``: :mod:`.choice` is what is sent, :mod:`.sender` sends it."""
