"""Holders of two tokens write as the guide says; the older one is late."""

import json
import sys

import boto3
from botocore.exceptions import ClientError

endpoint, bucket, access_key, secret = sys.argv[1:]


class LockLost(Exception):
    pass


# EXAMPLE


def client():
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=access_key,
        aws_secret_access_key=secret,
    )


def held():
    return json.load(client().get_object(Bucket=bucket, Key="account")["Body"])


class Overtaken:
    """A client between whose read and put somebody else writes."""

    def __init__(self, between):
        self.between = between
        self.real = client()
        self.exceptions = self.real.exceptions

    def get_object(self, **arguments):
        return self.real.get_object(**arguments)

    def put_object(self, **arguments):
        if self.between:
            self.between, between = None, self.between
            between()
        return self.real.put_object(**arguments)


def lost(s3, token):
    try:
        write(s3, bucket, "account", token, "late", "late")
    except LockLost:
        return
    raise AssertionError(f"{token} was not refused")


write(client(), bucket, "account", 1, "a", "one")
write(client(), bucket, "account", 3, "b", "three")
lost(client(), 2)
assert held() == {"token": 3, "owner": "b", "value": "three"}, held()
lost(Overtaken(lambda: write(client(), bucket, "account", 5, "c", "five")), 4)
# An older holder comes in between: ours wins.
write(Overtaken(lambda: write(client(), bucket, "account", 6, "d", "six")), bucket, "account", 7, "e", "seven")
# The same write again, as after an answer that was lost.
before = client().head_object(Bucket=bucket, Key="account")["ETag"]
write(client(), bucket, "account", 7, "e", "seven")
assert client().head_object(Bucket=bucket, Key="account")["ETag"] == before
assert held() == {"token": 7, "owner": "e", "value": "seven"}, held()
# The same token in other hands.
lost(client(), 7)
print("fenced")
