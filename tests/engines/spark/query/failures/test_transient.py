"""Errors of databases, stores and services that pass by themselves, known by the names and words of their clients."""

import pytest
from py4j.protocol import Py4JError

from barograph.engines.spark.query.failures.diagnosis import Cause, diagnose, diagnose_failed_start

TASK = "Job aborted: Lost task 2.0 in stage 20.0 (TID 48) (127.0.0.4 executor 0): org.apache.spark.{}"
WRITING = TASK.format("SparkException: Task failed while writing rows.\n\tat org.apache.spark.Some.line(Some:1)")
TRACEBACK = TASK.format(
    'api.python.PythonException: Traceback (most recent call last):\n  File "job.py", line 9, in <lambda>\n{}'
)


@pytest.mark.parametrize(
    "said",
    [
        "org.postgresql.util.PSQLException: This connection has been closed.",
        "org.postgresql.util.PSQLException: FATAL: the database system is starting up",
        "org.postgresql.util.PSQLException: FATAL: terminating connection due to administrator command",
        "com.mysql.cj.jdbc.exceptions.CommunicationsException: Communications link failure",
        "com.microsoft.sqlserver.jdbc.SQLServerException: The connection is closed.",
        "oracle.jdbc.OracleDatabaseException: ORA-12514: TNS:listener does not know of the service",
        "java.sql.BatchUpdateException: Batch entry 0 was aborted: An I/O error occurred while sending to the backend.",
        "org.rocksdb.RocksDBException: IO error: While appending to file: /s/000123.sst",
        "org.apache.hadoop.fs.s3a.AWSClientIOException: getFileStatus on s3a://b/c: Unable to execute HTTP request",
    ],
)
def test_classes_of_javas_libraries_are_known_by_name(said: str) -> None:
    """A task's own exception may not reach the driver, and of a failed start there are only names."""
    assert diagnose(f"{WRITING}\nCaused by: {said}\n\tat a.B.c(B:1)", 1.0, 4, []).cause is Cause.OUTAGE
    assert diagnose_failed_start(Py4JError(f"An error occurred.\n: {said}\n\tat a.B.c(B:1)"), 1.0).cause is Cause.OUTAGE


@pytest.mark.parametrize(
    "said",
    [
        "redis.exceptions.TimeoutError: Timeout reading from socket",
        "urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='h', port=443): Read timed out.",
        "http.client.RemoteDisconnected: Remote end closed connection without response",
        'botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "https://s3"',
        "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the PutObject operation",
        "pymongo.errors.AutoReconnect: connection closed",
        "requests.exceptions.ConnectionError: ('Connection aborted.', x)",
        "httpx.ConnectTimeout: timed out",
        "aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected",
        "psycopg2.errors.AdminShutdown: terminating connection due to administrator command",
        "psycopg.OperationalError: consuming input failed: server closed the connection unexpectedly",
        "sqlalchemy.exc.OperationalError: (pymysql.err.OperationalError) (2013, 'Lost connection to MySQL server')",
        "oracledb.exceptions.OperationalError: DPY-6005: cannot connect to database",
        "socket.gaierror: [Errno -2] Name or service not known",
    ],
)
def test_classes_of_pythons_clients_are_known_by_name(said: str) -> None:
    assert diagnose(TRACEBACK.format(said), 1.0, 4, []).cause is Cause.OUTAGE
