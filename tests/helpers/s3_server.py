"""An S3 server on this machine, by moto. Without the package, tests are skipped."""

import contextlib

import pytest


@contextlib.contextmanager
def s3_bucket(monkeypatch, bucket="bucket"):
    """The URL of a new bucket. Environment variables name the server and its credentials."""
    moto, boto3 = pytest.importorskip("moto.server"), pytest.importorskip("boto3")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    variables = {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": "http://{}:{}".format(*server.get_host_and_port()),
        "AWS_ALLOW_HTTP": "true",  # for LanceDB
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    try:
        boto3.client("s3").create_bucket(Bucket=bucket)
        yield f"s3://{bucket}"
    finally:
        server.stop()
