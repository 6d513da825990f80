"""No credential survives in a text that leaves the worker, and nothing else is taken out of it."""

from __future__ import annotations

import logging
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.credentials import is_secret, logger, scrub, scrub_name

IN_URLS = {
    "an @ in the password": ("https://user:p@ss-w0rd@mirror", "https://mirror"),
    "a path behind it": ("get https://user:p@ss@mirror/a@b?c=d@e", "get https://mirror/a@b?c=d@e"),
    "keys of a store": ("s3a://AKIA1234:shh@lake/orders", "s3a://lake/orders"),
    "a secret with slashes": ("s3a://AKIA:wJalr/K7+b@lake/a@b", "s3a://lake/a@b"),
    "a secret with a sharp": ("https://user:p#s?s@mirror", "https://mirror"),
    "a user alone": ("s3a://key@bucket", "s3a://bucket"),
    "a quote in the password": ("ftp://u:p'w\"d@host/x", "ftp://host/x"),
    "two URLs": ("a://x:y@z/1 and b://u:v@w/2", "a://z/1 and b://w/2"),
    "in JSON": ('{"a":"s3a://k:s@b","c":"d@e"}', '{"a":"s3a://b","c":"d@e"}'),
    "a scheme in a word": ("1s3a://k:s@b/x", "1s3a://b/x"),
    "Azure without a container": ("abfss://u:p@account/x", "abfss://account/x"),
    "Azure with one": ("abfss://u:p@box@account/x", "abfss://box@account/x"),
    "IPv6": ("https://u:p@[::1]:80/x", "https://[::1]:80/x"),
    "user and password": ("https://h/x?user=u&password=s", "https://h/x"),
    "before others": ("https://h/x?token=s&a=1#b", "https://h/x?a=1#b"),
    "behind others": ("https://h/x?a=1&apiKey=s", "https://h/x?a=1"),
    "among others": ("?a=1&access_token=s&b=2", "?a=1&b=2"),
    "in the fragment": ("https://h/x#access_token=s", "https://h/x"),
    "signed by AWS": (
        "https://b.host/k?X-Amz-Credential=A%2F1&X-Amz-Date=2&X-Amz-Signature=c"
        "&X-Amz-Security-Token=d",
        "https://b.host/k?X-Amz-Date=2",
    ),
    "signed by Google": ("https://h/k?X-Goog-Signature=c&b=1", "https://h/k?b=1"),
    "signed by Azure": ("https://h/p?sv=1&sig=a%2Fb%3D&se=2", "https://h/p?sv=1&se=2"),
    "Azure's account key": (
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=a+/==;EndpointSuffix=y",
        "DefaultEndpointsProtocol=https;AccountName=x;EndpointSuffix=y",
    ),
    "Azure's service bus": (
        "Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey=k=;SharedAccessSignature=s",
        "Endpoint=sb://h/",
    ),
    "H2": ("jdbc:h2:file:/lake/db;USER=me;PASSWORD=s;MODE=x", "jdbc:h2:file:/lake/db;MODE=x"),
    "PostgreSQL": ("jdbc:postgresql://me:p@ss@host:5432/db", "jdbc:postgresql://host:5432/db"),
    "MySQL": ("jdbc:mysql://h/db?user=u&password=s&useSSL=true", "jdbc:mysql://h/db?useSSL=true"),
    "MySQL's key-value form": ("jdbc:mysql://(host=h,password=s)/db", "jdbc:mysql://(host=h)/db"),
    "SQL Server": (
        "jdbc:sqlserver://h:1433;databaseName=x;user=me@corp;password={a;b c};encrypt=true",
        "jdbc:sqlserver://h:1433;databaseName=x;encrypt=true",
    ),
    "Oracle": ("jdbc:oracle:thin:me/p@w@//h:1521/s", "jdbc:oracle:thin:@//h:1521/s"),
    "Teradata": ("jdbc:teradata://h/USER=u,PASSWORD=s,DBS=1", "jdbc:teradata://h/DBS=1"),
    "Db2": ("jdbc:db2://h:50000/db:user=u;password=s;x=1", "jdbc:db2://h:50000/db:x=1"),
    "Snowflake": (
        "jdbc:snowflake://h/?db=x&private_key_pwd=s&authenticator=a",
        "jdbc:snowflake://h/?db=x&authenticator=a",
    ),
    "at the end of a sentence": ("Is (https://h/x?token=s) away?", "Is (https://h/x) away?"),
    "an API key": ("https://h/x?key=AIzaSyA-1234567890abcdef&a=1", "https://h/x?a=1"),
    "percent-encoded": (
        "https://h/?to=https%3A%2F%2Fu%3As3cr%40x%2F1",
        "https://h/?to=https%3A%2F%2Fx%2F1",
    ),
    "a parameter that is a URL": ("https://h?to=s3a://k:s@b&password=q", "https://h?to=s3a://b"),
}
IN_WORDS = {
    "a message": ("It failed (token=abc123).", "It failed (token=***)."),
    "an argument": ("--password=s --day={{ ds }}", "--password=*** --day={{ ds }}"),
    "a template": ("--token={{ var.value.t }} -v", "--token=*** -v"),
    "a Spark property": ("spark.hadoop.fs.s3a.secret.key=s", "spark.hadoop.fs.s3a.secret.key=***"),
    "in quotes": ("password='a b'; x", "password='***'; x"),
    "JSON": ('{"apiKey": "s", "type": "x"}', '{"apiKey": "***", "type": "x"}'),
    "Python": ("{'auth': {'api_key': 's'}}", "{'auth': {'api_key': '***'}}"),
    "options of a table": (
        "OPTIONS (url 'jdbc:h2:x;PASSWORD=q', dbtable 't', password 'a''b')",
        "OPTIONS (url 'jdbc:h2:x', dbtable 't', password '***')",
    ),
    "options with =": ("OPTIONS (password = \"s\")", 'OPTIONS (password = "***")'),
    "options with quoted keys": ("OPTIONS (\"password\" 'a')", "OPTIONS (\"password\" '***')"),
    "JSON in JSON": (
        r'{"conf": "{\"password\": \"s\", \"a\": 1}"}',
        r'{"conf": "{\"password\": \"***\", \"a\": 1}"}',
    ),
    "two arguments": ("job.py --password s --day x", "job.py --password *** --day x"),
    "two arguments in a list": (
        "['job.py', '--api-token', 's', '--day']",
        "['job.py', '--api-token', '***', '--day']",
    ),
    "two arguments in JSON": ('["--password", "s"]', '["--password", "***"]'),
    "YAML": ("user: u\n  password: s\nx: y", "user: u\n  password: ***\nx: y"),
    "YAML in one line": ("{user: u, dbPassword: s}", "{user: u, dbPassword: ***}"),
    "a header": ("GET /x Authorization: Bearer s.t-u Host: h", "GET /x Authorization: *** Host: h"),
    "a header in a dict": ("{'Authorization': 'Basic bWU6cw=='}", "{'Authorization': '***'}"),
    "a token by itself": (
        "refused: Bearer eyJhbGciOi.eyJzdWIi.c2ln",
        "refused: Bearer ***",
    ),
    "a private key": (
        "-----BEGIN RSA PRIVATE KEY-----\ns\n-----END RSA PRIVATE KEY-----\nx",
        "***\nx",
    ),
    "half a password in a URL": ("OSError: https://me:s3cr", "OSError: https://***"),
    "half a password in a sentence": ("at s3a://AKIA:s3cr; x", "at s3a://***; x"),
    "half a private key": ("-----BEGIN PRIVATE KEY-----\ns", "***"),
    "Spark's pairs": (
        "[('spark.app.name', 'a'), ('spark.my.password', 'x1 y'), ('spark.ui.port', '1')]",
        "[('spark.app.name', 'a'), ('spark.my.password', '***'), ('spark.ui.port', '1')]",
    ),
    "a login in SQL": ("ALTER USER me identified by 'x1'", "ALTER USER me identified by '***'"),
    "Oracle's login": ("sqlplus scott/tiger@//h:1521/s", "sqlplus @//h:1521/s"),
    "percent-encoded": ("a=password%3Ds%26b", "a=password%3D***"),
    "Kafka": (
        'PlainLoginModule required username="u" password="s";',
        'PlainLoginModule required username="u" password="***";',
    ),
    "truncated": ("OPTIONS (password 'hunt", "OPTIONS (password '***'"),
}  # fmt: skip
WITHOUT = (
    "",
    "/lake/orders/dt=2024-05-06",
    "/lake/token=5/password=x",
    "s3://lake/access_key=7/part-0.parquet",
    "s3a://bucket/a@b/c",
    "hdfs://ns:8020/x@y",
    "https://host/?to=a@b",
    "https://h/x?page=2&size=10",
    "https://h/x?max_tokens=5&tokenizer=x",
    "jdbc:postgresql://h1:5432,h2:5433/db?ssl=true",
    "jdbc:oracle:thin:@//host:1521/service",
    "jdbc:sqlserver://host:1433;databaseName=x",
    "mongodb://h1:27017,h2:27018/x@y",
    "abfss://container@account.dfs.core.windows.net/x",
    "wasb://container@account.blob.core.windows.net/x",
    "someone@example.org",
    "file:///lake/a@b",
    "concat(token, 'x') AS token",
    "password IS NOT NULL AND secret IN ('a', 'b')",
    "Unexpected token 'x'",
    "name = 'a secret' AND other = 'x'",
    "concat('password', 'x')",
    "the password: see the connection",
    "fs.s3a.aws.credentials.provider=org.apache.X",
    "Nothing listens at http://marquez:5000.",
    "(see http://marquez:5000/, http://[::1]:80)",
    "http://{{ host }}:{{ port }}",
    "http://[::1]",
    "(http://[::1]:5000)",
    "kafka://h1:9092,h2:9092",
    "s3://arn:aws:s3:eu-west-1:1:accesspoint/u@c",
    "https://h/x?key=orders&page=2",
    "file:///lake/token%3D5/part-0.parquet",
    "file:///lake/at=a%40b",
    "Password: see the connection",
    "Bearer authentication is wanted",
    "com.example.InvalidTokenError: expired",
)


def cases(table):
    return [pytest.param(*row, id=name) for name, row in table.items()]


@pytest.mark.parametrize(("text", "expected"), cases(IN_URLS))
def test_urls_lose_their_credentials_in_texts_and_in_names(text, expected):
    assert scrub(text) == scrub_name(text) == expected


@pytest.mark.parametrize(("text", "expected"), cases(IN_WORDS))
def test_settings_are_hidden_in_texts(text, expected):
    assert scrub(text) == expected


@pytest.mark.parametrize("text", WITHOUT)
def test_what_has_no_credential_stays_as_it_is(text):
    assert scrub(text) == scrub_name(text) == text


@pytest.mark.parametrize("name", ["token=5", "dt=2024-05-06, secret=x", "`a b`=1", "password=x"])
def test_a_partition_is_no_credential_whatever_its_column_is_called(name):
    assert scrub_name(name) == name


@pytest.mark.parametrize(
    "key",
    ["password", "PASSWORD", "dbPassword", "passwd", "pwd", "token", "accessToken", "secretKey",
     "accessKey", "AWSAccessKeyId", "fs.s3a.secret.key", "X-Amz-Signature", "sig", "api-key",
     "fs.azure.account.key.x.dfs", "SharedAccessSignature", "privateKey", "sasToken", "auth"],
)  # fmt: skip
def test_keys_of_secrets_are_known_by_their_words(key):
    assert is_secret(key)


@pytest.mark.parametrize(
    "key", ["key", "user", "design", "author", "authenticator", "tokenizer", "max_tokens", "passed",
            "compass", "sigma", "primary_key", "keytab", "fs.s3a.aws.credentials.provider"]
)  # fmt: skip
def test_other_keys_are_not(key):
    assert not is_secret(key)


# --- laws -----------------------------------------------------------------------------------------

# What people put into passwords; a blank ends a URL.
PASSWORDS = st.text(
    st.sampled_from("abz0189@:!$%^*+=~._-ż\N{TURTLE}"), min_size=1, max_size=12
).map(lambda text: f"Zq{text}Qz")
SLASHED = st.text(st.sampled_from("ab@/?#:;=&+"), max_size=12).map(lambda text: f"Zq{text}Qz")
AROUND = st.text(st.sampled_from("ab \n\"'(){}[],;."), max_size=8)
URLS = (
    "s3a://AKIA:{}@bucket/x",
    "https://{}@mirror",
    "https://user:{}@mirror:80/x?a=b@c#d",
    "jdbc:postgresql://me:{}@host:5432/db",
    "https://h/x?a=1&password={}",
    "https://h/x?password={}&a=1",
    "jdbc:sqlserver://h:1433;user=me;password={};a=1",
    "jdbc:h2:/lake/db;PASSWORD={}",
    "jdbc:mysql://h/db?user=u&password={}&a=1",
    "jdbc:oracle:thin:me/{}@//h:1521/s",
    "https://h/p?sig={}&se=2",
    "Server=h;AccountKey={};x=1",
)
SETTINGS = (
    *("token={}", "--password={} -v", "'secret': '{}'", "OPTIONS (password '{}')"),
    *("--password {} -v", "Authorization: Bearer {} x", "['--token', '{}']"),
)


@pytest.mark.parametrize("form", URLS)
@given(PASSWORDS, AROUND, AROUND)
def test_no_planted_password_survives_in_a_url(form, password, before, after):
    text = f"{before} {form.format(password)} {after}"
    for scrubbed in (scrub(text), scrub_name(text)):
        assert "Zq" not in scrubbed
        assert "Qz" not in scrubbed


@pytest.mark.parametrize("form", SETTINGS)
@given(PASSWORDS, AROUND)
def test_no_planted_password_survives_in_a_setting(form, password, before):
    scrubbed = scrub(f"{before} {form.format(password)} x")
    assert "Zq" not in scrubbed
    assert "Qz" not in scrubbed


@given(SLASHED.filter(lambda text: "@" not in text))
def test_a_password_may_have_what_ends_an_authority(password):
    assert scrub(f"s3a://AKIA:{password}@lake/x") == "s3a://lake/x"


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            *"ab:/@?&;=#'\"{}()[], \\.<`",
            *("://", "password=", "token", "jdbc:", "user=", "secret"),
            *("oracle:thin:", "abfss", ";a=", "password '", "--password", "--", "%3D", "%40"),
            *("Authorization: ", "Bearer ", "PRIVATE KEY-----", "-----BEGIN ", "\n", "@//"),
            *('\\"', "key=", "%3A%2F%2F", "arn:", ": "),
        ]
    ),
    max_size=40,
).map("".join)


@given(st.text(max_size=60) | FRAGMENTS)
def test_scrubbing_twice_is_scrubbing_once_and_never_raises(text):
    assert scrub(scrub(text)) == scrub(text)
    assert scrub_name(scrub_name(text)) == scrub_name(text)


@given(st.text(st.characters(exclude_characters="@=?&;'\"")))
def test_a_text_without_any_of_the_signs_is_unchanged(text):
    assert scrub(text) == text


@pytest.mark.parametrize("last", ["", "@", "'", "=x"])
@pytest.mark.parametrize(
    "fragment",
    ["://a:b", "://a:b@", "@", "password=", "?password=", "; token=", "a=", "token ", "'", "{",
     "password '", "\\", "jdbc:", "jdbc:x/", "://[", '"secret"', "password'\\", "://h;", "((pwd=",
     "oracle:thin:", ";a b", "a.", "://u:/", "--password ", "--a", "'--token','", "\npassword: ",
     "password: x", "authorization: basic ", "Bearer ", "-----BEGIN PRIVATE KEY-----", "a/",
     "a@//", "a/b@//", "%3D", "a%3d", "%3A%2F%2F", "%25", '\\"password\\": \\"', "?key=", "\\'"],
)  # fmt: skip
def test_hostile_texts_take_time_in_proportion_to_their_length(fragment, last):
    text = fragment * (200_000 // len(fragment)) + last
    begun = time.process_time()
    scrub(text)
    # A quarter of a second at most; a quadratic search would take minutes.
    assert time.process_time() - begun < 5


# --- logs -----------------------------------------------------------------------------------------


def test_neither_messages_nor_tracebacks_in_the_log_show_credentials(caplog):
    log = logger("airflow_provider_sparklineage.tried")
    error = OSError("https://user:p@ss-w0rd@mirror is away")
    with caplog.at_level(logging.DEBUG, log.name):
        log.warning("It failed (%s).", error)
        log.debug("It failed.", exc_info=error)
    assert "ss-w0rd" not in caplog.text
    assert "It failed (https://mirror is away)." in caplog.text
    assert "OSError: https://mirror is away" in caplog.text


def test_a_message_is_one_line_whatever_names_are_in_it(caplog):
    log = logger("airflow_provider_sparklineage.tried")
    log.warning("No dataset is known for %s.", "a\nERROR it failed\r\x1b[2J\u202eb\u2028c\ud800")
    [record] = caplog.records
    assert record.getMessage() == (
        r"No dataset is known for a\nERROR it failed\r\x1b[2J\u202eb\u2028c\ud800."
    )


def test_a_traceback_keeps_its_lines_and_no_other_control_character(caplog):
    log = logger("airflow_provider_sparklineage.tried")
    log.warning("It failed.", exc_info=OSError("\x1b]0;title\x07"))
    [record] = caplog.records
    assert record.getMessage().splitlines() == ["It failed.", r"OSError: \x1b]0;title\x07"]


class UnprintableError(Exception):
    def __str__(self):
        raise AttributeError


@pytest.mark.parametrize(
    ("message", "argument"),
    [("%d", "x"), ("It failed (%s).", UnprintableError())],
    ids=["not of the kind", "an exception without a text"],
)
def test_a_message_that_cannot_be_formatted_is_left_to_the_handler(message, argument):
    record = logging.LogRecord("x", logging.INFO, "", 1, message, (argument,), None)
    assert logger("airflow_provider_sparklineage.tried").filters[0].filter(record)
    assert record.args == (argument,)
