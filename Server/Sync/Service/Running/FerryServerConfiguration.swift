import FerryHTTPServer
import FerryMissionServer
import FerryProtocol
import FerryTracing

/// How a server runs.
package struct FerryServerConfiguration: Sendable {
  package var listen: ListenAddress
  package var store: StoreLocation
  /// Whether to serve without tokens even if others than this machine can connect.
  package var isInsecure = false
  /// Threads that read and write sockets.
  package var threads = 2
  /// Connections at once; each listener to events holds one.
  package var connectionLimit = 4_096
  /// Further connections, which serve probes and administration only.
  package var connectionReserve = 16
  /// Connections of one address that is not this machine's; `nil` for no limit.
  package var addressLimit: Int? = 256
  /// The proxies whose clients count by their own addresses.
  package var proxies = TrustedProxies()
  /// Streams of events at once; `nil` for half of the connections.
  package var streamLimit: Int?
  /// Streams of events of one address that is not this machine's; `nil` for no limit.
  package var addressStreamLimit: Int? = 128
  /// How slow clients may be.
  package var pace = TransferPace()
  /// Bytes of memory that all requests may take together: their contents, data and answers.
  package var memoryBudget = 256 << 20
  /// Connections to a PostgreSQL database.
  package var databaseConnections = PostgresStore.connectionsStandard
  /// The time between two comments on an idle stream of events.
  package var heartbeat = Duration.seconds(15)
  /// How long requests in progress may take when the server stops.
  package var stopGrace = Duration.seconds(20)
  /// How long the start waits for a database that is not available.
  package var startWait = Duration.seconds(30)
  /// The time between two runs of the pruner.
  package var pruneInterval = Pruner.Pace.standard.interval
  /// The directory of missions' content. `nil` stands for `blobs` in the directory of an embedded
  /// store that the server opens, and for no directory with another store.
  package var blobs: String?
  /// The store of missions' content; `nil` for the directory ``blobs``.
  package var content: (any ContentStore)?
  /// The key that signs missions; `nil` for one beside their content.
  package var missionKey: String?
  /// Bytes that a space's unfinished uploads may have together.
  package var uploadQuota = MissionService.uploadQuotaStandard
  /// The time between two runs that remove content which no space needs any more.
  package var collectInterval = Duration.seconds(3_600)
  /// Names that requests to an open server may carry, besides this machine's.
  package var allowedHosts: [String] = []
  /// Origins whose pages may use the server from browsers.
  package var allowedOrigins: [WebOrigin] = []
  /// The issuer of accepted JSON Web Tokens; `nil` for none.
  package var issuer: TokenIssuer?
  package var rates = RateLimits.standard
  /// How long entries of the audit log are kept.
  package var auditRetention = Duration.seconds(400 * 86_400)
  package var limits = Limits.standard
  /// The quotas of one principal, and of one space.
  package var quotas = Quotas.standard
  package var clock = ServiceClock.system
  package var log: ServiceLog
  /// Exports the spans of requests; `nil` for none.
  package var tracer: Tracer?
  /// The figures of mirrors that run in this process.
  package var mirrors = MirrorGauges()

  /// - Parameter log: The log of the server; see the properties for the rest.
  package init(listen: ListenAddress, store: StoreLocation, log: ServiceLog) {
    self.listen = listen
    self.store = store
    self.log = log
  }
}
