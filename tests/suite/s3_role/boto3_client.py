"""Uses an S3 as a program with boto3 would, and prints a line for each thing that works.

Called with the endpoint, the bucket, the access key and the secret.
"""

import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

endpoint, bucket, access_key, secret = sys.argv[1:]


def client(secret):
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=access_key,
        aws_secret_access_key=secret,
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )


s3 = client(secret)


def works(name):
    print(name, flush=True)


def refused(code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error.response
        return
    raise AssertionError(f"{arguments} was not refused with {code}")


def body(key, **more):
    return s3.get_object(Bucket=bucket, Key=key, **more)["Body"].read()


def put(key, content, **more):
    return s3.put_object(Bucket=bucket, Key=key, Body=content, **more)


first = put("a/object", b"one", IfNoneMatch="*", Metadata={"owner": "me"}, ContentType="text/x")
assert body("a/object") == b"one"
refused("PreconditionFailed", put, key="a/object", content=b"again", IfNoneMatch="*")
works("create once")

second = put("a/object", b"two", IfMatch=first["ETag"])
refused("PreconditionFailed", put, key="a/object", content=b"late", IfMatch=first["ETag"])
refused("NoSuchKey", put, key="a/nothing", content=b"late", IfMatch=first["ETag"])
assert body("a/object") == b"two"
works("replace a version once")

assert body("a/object", VersionId=first["VersionId"]) == b"one"
assert body("a/object", VersionId=second["VersionId"]) == b"two"
refused("NoSuchVersion", s3.get_object, Bucket=bucket, Key="a/object", VersionId="999999")
assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
works("versions")

head = s3.head_object(Bucket=bucket, Key="a/object", VersionId=first["VersionId"])
assert head["Metadata"] == {"owner": "me"} and head["ContentType"] == "text/x", head
assert head["ContentLength"] == 3 and head["ETag"] == first["ETag"], head
assert head["LastModified"].year > 2000, head
refused("404", s3.head_object, Bucket=bucket, Key="a/nothing")
works("head")

assert body("a/object", Range="bytes=1-") == b"wo"
refused("InvalidRange", s3.get_object, Bucket=bucket, Key="a/object", Range="bytes=9-")
refused("304", s3.get_object, Bucket=bucket, Key="a/object", IfNoneMatch=second["ETag"])
works("ranges and unchanged objects")

names = ["list/a b", "list/c&<d>", "list/e+f%20", "list/ünï", "list/deep/x", "list/deep/y", "list/z"]
for name in names:
    put(name, name.encode())
    assert body(name) == name.encode()
pages = s3.get_paginator("list_objects_v2")
pages = pages.paginate(Bucket=bucket, Prefix="list/", PaginationConfig={"PageSize": 2})
listed = [entry for page in pages for entry in page.get("Contents", [])]
assert [entry["Key"] for entry in listed] == sorted(names, key=str.encode), listed
assert all(entry["Size"] == len(entry["Key"].encode()) for entry in listed), listed
works("list in pages")

for lists in [s3.list_objects_v2, s3.list_objects]:
    groups = lists(Bucket=bucket, Prefix="list/", Delimiter="/")
    assert [group["Prefix"] for group in groups["CommonPrefixes"]] == ["list/deep/"], groups
    assert len(groups["Contents"]) == 5, groups
works("list in groups")

refused("PreconditionFailed", s3.delete_object, Bucket=bucket, Key="a/object", IfMatch=first["ETag"])
gone = s3.delete_object(Bucket=bucket, Key="a/object")
assert gone["DeleteMarker"], gone
refused("NoSuchKey", s3.get_object, Bucket=bucket, Key="a/object")
assert body("a/object", VersionId=second["VersionId"]) == b"two"
refused("NoSuchKey", put, key="a/object", content=b"late", IfMatch=second["ETag"])
third = put("a/object", b"two", IfNoneMatch="*")
assert third["ETag"] != second["ETag"]
works("delete and create again")

keys = [{"Key": name} for name in names]
deleted = s3.delete_objects(Bucket=bucket, Delete={"Objects": keys})
assert sorted(entry["Key"] for entry in deleted["Deleted"]) == sorted(names), deleted
assert s3.list_objects_v2(Bucket=bucket, Prefix="list/")["KeyCount"] == 0
works("delete many")

refused("BucketAlreadyOwnedByYou", s3.create_bucket, Bucket=bucket)
s3.create_bucket(Bucket="another")
s3.put_object(Bucket="another", Key="k", Body=b"x")
assert {entry["Name"] for entry in s3.list_buckets()["Buckets"]} == {bucket, "another"}
refused("BucketNotEmpty", s3.delete_bucket, Bucket="another")
s3.delete_object(Bucket="another", Key="k")
s3.delete_bucket(Bucket="another")
refused("NoSuchBucket", s3.put_object, Bucket="another", Key="k", Body=b"x")
refused("404", s3.head_bucket, Bucket="another")
works("buckets")

refused("EntityTooLarge", put, key="large", content=b"x" * (64 * 1024 + 1))
put("large", b"x" * (64 * 1024))
refused("NotImplemented", s3.create_multipart_upload, Bucket=bucket, Key="parts")
works("limits")

refused("SignatureDoesNotMatch", client("wrong").list_objects_v2, Bucket=bucket)
access_key = "nobody"
refused("InvalidAccessKeyId", client(secret).list_objects_v2, Bucket=bucket)
works("wrong keys")
