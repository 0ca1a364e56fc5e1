"""The names and words by which errors of Java, Python, databases and their clients say "not now", or "this is wrong".

Tables only: ``transient`` reads errors with them. Names are regular expressions of whole names of classes.
"""

# Exceptions of Java and its libraries. A class that also stands for wrong input is not here.
JAVA = (
    r"java\.io\.(?:IOException|EOFException|InterruptedIOException|SyncFailedException)",
    r"java\.net\.(?!MalformedURL|URISyntax)\w+Exception", r"java\.nio\.channels\.\w+Exception",
    r"java\.nio\.file\.FileSystemException",
    r"java\.util\.concurrent\.TimeoutException", r"javax\.net\.ssl\.\w+Exception",
    r"java\.sql\.(?:SQLException|SQLTransient\w*|SQLRecoverable\w*|SQLTimeout\w*|SQLNonTransientConnection\w*)",
    r"(?:\w+\.)*CommunicationsException", r"oracle\.net\.[\w.]*NetException",
    r"org\.apache\.hadoop\.(?:net|ipc)\.\w+Exception", r"org\.apache\.hadoop\.fs\.FSError",
    r"org\.apache\.hadoop\.hdfs\.\w*Exception",
    r"org\.apache\.hadoop\.fs\.s3a\.AWS(?:ClientIO|ServiceIO|ServiceThrottled|Status500|NoResponse|ApiCallTimeout)"
    r"Exception",
    r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Network|Disconnect|Retriable|NotLeaderOrFollower|LeaderNotAvailable|"
    r"BrokerNotAvailable|CoordinatorNotAvailable|CoordinatorLoadInProgress|NotCoordinator|NotEnoughReplicas\w*|"
    r"KafkaStorage|UnknownServer|Interrupt)Exception",
    r"(?:software\.amazon\.awssdk|com\.amazonaws)\.\S*(?:SdkClient|ServiceUnavailable|Timeout)\w*Exception",
    r"org\.rocksdb\.RocksDBException: IO error",
)  # fmt: skip
# Exceptions of Java that are errors of files or databases by their type, and say that the program or its input is
# wrong. Each stands for the classes that extend it too, as far as none of those is in the table above.
JAVA_WRONG = (
    r"java\.io\.(?:FileNotFound|ObjectStream|CharConversion|UnsupportedEncoding|UTFDataFormat)Exception",
    r"java\.nio\.charset\.CharacterCodingException", r"java\.util\.zip\.ZipException",
    r"java\.nio\.file\.(?:NoSuchFile|AccessDenied|FileAlreadyExists|NotDirectory|DirectoryNotEmpty|NotLink|"
    r"FileSystemLoop)Exception",
    r"java\.net\.MalformedURLException", r"java\.util\.InvalidPropertiesFormatException",
    r"(?:\w+\.)*(?:JacksonException|JsonProcessingException|MalformedJsonException)",
    r"org\.apache\.hadoop\.security\.AccessControlException", r"org\.apache\.hadoop\.mapred\.Invalid\w+Exception",
    r"org\.apache\.hadoop\.(?:fs|mapred)\.(?:FileAlreadyExists|InvalidRequest|ParentNotDirectory|PathIsDirectory|"
    r"PathIsNotDirectory|PathNotFound|PathExists|PathPermission|UnsupportedFileSystem)Exception",
    r"org\.apache\.hadoop\.fs\.s3a\.AWSBadRequestException",
    r"java\.sql\.(?:SQLNonTransientException|DataTruncation)",
)  # fmt: skip

# Exceptions of Python and the usual clients. Names that say it themselves are found in any module.
PYTHON = (
    r"(?:\w+\.)*(?:ConnectionError|ConnectionRefusedError|ConnectionResetError|ConnectionAbortedError|BrokenPipeError|"
    r"TimeoutError)",
    r"socket\.(?:timeout|gaierror|herror)", r"ssl\.SSL(?:EOF|ZeroReturn|Syscall)Error",
    r"http\.client\.(?:RemoteDisconnected|IncompleteRead)",
    r"urllib3\.exceptions\.(?:ReadTimeout|ConnectTimeout|NewConnection|NameResolution|Protocol|MaxRetry|Proxy)Error",
    r"urllib3\.exceptions\.IncompleteRead",
    r"requests\.exceptions\.(?:\w*(?:Connection|Timeout)\w*|ChunkedEncodingError|ProxyError|RetryError)",
    r"http(?:x|core)\.(?:\w*Timeout|(?:Connect|Read|Write|Close|Network|Proxy|RemoteProtocol)Error)",
    r"aiohttp\.(?:\w+\.)?(?:Client(?:Connector|Connection|OS|Payload)|Server(?:Disconnected|Connection|Timeout)|"
    r"ConnectionTimeout|SocketTimeout)Error",
    r"botocore\.(?:exceptions|httpsession)\.(?:EndpointConnection|ConnectTimeout|ReadTimeout|ConnectionClosed|"
    r"ProxyConnection|HTTPClient|ResponseStreaming|IncompleteRead)Error",
    r"botocore\.(?:exceptions|errorfactory)\.\w+: An error occurred \((?:Throttl\w*|SlowDown|RequestTimeout|"
    r"RequestLimitExceeded|ProvisionedThroughputExceededException|ServiceUnavailable\w*|Internal\w*|50[0234])\)[^\n]*",
    r"google\.api_core\.exceptions\.(?:ServiceUnavailable|DeadlineExceeded|GatewayTimeout|BadGateway|TooManyRequests|"
    r"ResourceExhausted|InternalServerError|RetryError|Aborted)",
    r"azure\.core\.exceptions\.(?:Service(?:Request|Response)(?:Timeout)?Error|IncompleteReadError)",
    r"pymongo\.errors\.(?:AutoReconnect|NetworkTimeout|NotPrimaryError|ServerSelectionTimeoutError|ConnectionFailure|"
    r"ExecutionTimeout|WTimeoutError|WaitQueueTimeoutError)",
    r"redis\.exceptions\.(?:BusyLoading|ReadOnly|TryAgain|ClusterDown|MasterDown|MaxConnections)Error",
    r"kafka\.errors\.(?:NoBrokersAvailable|NodeNotReadyError|KafkaTimeoutError|KafkaConnectionError)",
    r"(?:elasticsearch|elastic_transport|opensearchpy)\.(?:\w+\.)?ConnectionTimeout",
    r"cassandra\.(?:cluster\.NoHostAvailable|OperationTimedOut|ReadTimeout|WriteTimeout|Unavailable)",
    r"pika\.exceptions\.(?:AMQPConnectionError|ConnectionClosed\w*|StreamLostError|AMQPHeartbeatTimeout)",
    r"psycopg(?:2|_pool)?\.(?:\w+\.)?(?:PoolTimeout|AdminShutdown|CrashShutdown|CannotConnectNow|ConnectionException|"
    r"ConnectionFailure|ConnectionDoesNotExist|TooManyConnections|DiskFull|OutOfMemory|IoError|DeadlockDetected|"
    r"SerializationFailure|LockNotAvailable|QueryCanceled|ReadOnlySqlTransaction)",
    r"asyncpg\.exceptions\.(?:AdminShutdown|CrashShutdown|CannotConnectNow|Connection\w*|TooManyConnections|DiskFull|"
    r"DeadlockDetected|Serialization|LockNotAvailable|QueryCanceled)Error",
)  # fmt: skip

# What the operating system and services say, whichever exception carries it.
WORDS = (
    "No space left on device", "Disk quota exceeded", "Too many open files", "Input/output error", "Stale file handle",
    "Connection refused", "Connection timed out", "No route to host", "Network is unreachable", "Host is down",
    "Temporary failure in name resolution", "Read-only file system", "Transport endpoint is not connected",
)  # fmt: skip

# Exceptions of databases' clients that stand for anything: wrong SQL as well as a lost connection.
DATABASE = (
    r"org\.postgresql\.[\w.$]+Exception", r"com\.mysql\.[\w.$]+Exception", r"org\.mariadb\.[\w.$]+Exception",
    r"com\.microsoft\.sqlserver\.[\w.$]+Exception", r"(?:oracle|oracledb)\.[\w.$]+(?:Exception|Error)",
    r"java\.sql\.BatchUpdateException",
    r"(?:psycopg2?|pymysql|MySQLdb|mysql|pyodbc|sqlite3|asyncpg|sqlalchemy)\.(?:\w+\.)*"
    r"(?:OperationalError|InterfaceError|InternalError|DatabaseError|DBAPIError|Error)",
)  # fmt: skip
# What those say in an outage, in any case of letters: PostgreSQL, MySQL and MariaDB, SQL Server, Oracle, SQLite.
DATABASE_WORDS = (
    "the database system is (?:starting up|shutting down|in recovery mode|not (?:yet )?accepting connections)",
    "terminating connection (?:due to|because of)", "server closed the connection", "connection (?:is )?already closed",
    "this connection has been closed", "I/O error occurred while", "the connection attempt failed",
    r"connection to \S+ refused", "too many (?:clients|connections)", "remaining connection slots",
    "could not serialize access", "deadlock", "canceling statement due to (?:lock|statement) timeout",
    "canceling statement due to conflict with recovery", "could not extend file", "in a read-only transaction",
    "communications link failure", "no operations allowed after connection closed", "lost connection to",
    "server has gone away", "can't connect to (?:local )?(?:MySQL|MariaDB|server)", "lock wait timeout exceeded",
    "server shutdown in progress", "--read-only option", r"the table '\S+' is full", "unexpected end of stream",
    "the TCP/IP connection to the host", "the connection is closed", "connection reset", "is not currently available",
    "the service is currently busy", "SHUTDOWN is in progress", r"transaction log for database \S+ is full",
    "could not allocate space", "read timed out", "the query has timed out", "did not return a response",
    r"ORA-(?:000(?:18|20|28|54|60)|00257|01012|0103[34]|01089|0109[02]|0165[0-5]|02396|0311[34]|03135|12170|125\d\d|"
    r"17002|17008|17410|25408)\b",
    r"DPY-(?:1001|4011|4024|60\d\d)\b",
    "database is locked", "disk I/O error", "database or disk is full",
)  # fmt: skip
# Classes of SQLSTATE, its first two characters, that say that a statement, its data or its rights are wrong.
STATES_WRONG = frozenset(
    "07 0A 20 21 22 23 26 27 28 2B 2D 2F 34 37 38 39 3B 3D 3F 42 44 P0".split()  # noqa: SIM905  # one line
)
# SQL Server's client says S0 for nearly everything. By number: these pass by themselves, as Microsoft lists them, and
# what is full or busy.
VAGUE_STATE = "S0"
SQL_SERVER_PASSING = frozenset(
    (
        64, 233, 615, 701, 802, 921, 922, 1105, 1204, 1205, 1222, 3960, 4060, 4221, 6005, 8645, 8651, 9001, 9002, 10053,
        10054, 10060, 10928, 10929, 10936, 17142, 40143, 40197, 40501, 40540, 40613, 42108, 42109, 49918, 49919, 49920,
    )
)  # fmt: skip
