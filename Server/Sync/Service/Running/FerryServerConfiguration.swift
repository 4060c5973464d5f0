import FerryHTTPServer
import FerryMissionServer
import FerryPlatform
import FerryProtocol

/// The configuration of a server.
package struct FerryServerConfiguration: Sendable {
  package var listen: ListenAddress
  package var store: StoreLocation
  /// True to serve without tokens even if others than this machine can connect.
  package var isInsecure = false
  /// Threads to read and write sockets.
  package var threads = 2
  /// The threads of requests; `nil` for threads of the server's own.
  package var workers: ThreadPoolExecutor?
  /// Connections at once; each listener to events holds one.
  package var connectionLimit = 4_096
  /// Further connections, which serve probes and administration only.
  package var connectionReserve = 16
  /// Connections of one address outside of this machine; `nil` for no limit.
  package var addressLimit: Int? = 256
  /// The proxies whose clients count by their own addresses.
  package var proxies = TrustedProxies()
  /// Streams of events at once; `nil` for half of the connections.
  package var streamLimit: Int?
  /// Streams of events of one address outside of this machine; `nil` for no limit.
  package var addressStreamLimit: Int? = 128
  /// The limits of clients' slowness.
  package var pace = TransferPace()
  /// Bytes of memory of all requests together: their contents, data and answers.
  package var memoryBudget = 256 << 20
  /// Connections to a PostgreSQL database.
  package var databaseConnections = PostgresStore.connectionsStandard
  /// The time between two comments on an idle stream of events.
  package var heartbeat = Duration.seconds(15)
  /// The time for requests in progress when the server stops.
  package var stopGrace = Duration.seconds(20)
  /// The longest wait of the start for an unavailable database.
  package var startWait = Duration.seconds(30)
  /// The time between two runs of the pruner.
  package var pruneInterval = Pruner.Pace.standard.interval
  /// The directory of missions' content. `nil` stands for `blobs` in the directory of an embedded
  /// store opened by the server, and for no directory with another store.
  package var blobs: String?
  /// The store of missions' content; `nil` for the directory ``blobs``.
  package var content: (any ContentStore)?
  /// The key that signs missions; `nil` for a key beside their content.
  package var missionKey: String?
  /// Bytes of a space's unfinished uploads together.
  package var uploadQuota = MissionService.uploadQuotaStandard
  /// The time between two removals of unneeded content.
  package var collectInterval = Duration.seconds(3_600)
  /// Permitted names in requests to an open server, besides this machine's.
  package var allowedHosts: [String] = []
  /// Origins whose pages may use the server from browsers.
  package var allowedOrigins: [WebOrigin] = []
  /// The issuer of accepted JSON Web Tokens; `nil` for none.
  package var issuer: TokenIssuer?
  package var rates = RateLimits.standard
  /// The names of spaces that every user may create; `nil` for none.
  package var userSpaces: SpacePattern?
  /// The retention of entries in the audit log.
  package var auditRetention = Duration.seconds(400 * 86_400)
  package var limits = Limits.standard
  /// The quotas of one principal, and of one space.
  package var quotas = Quotas.standard
  package var clock = ServiceClock.system
  package var log: ServiceLog
  /// Exports the spans of requests; `nil` for none.
  package var tracer: Tracer?
  /// The figures of mirrors in this process.
  package var mirrors = MirrorGauges()

  /// - Parameter log: The log of the server; see the properties for the rest.
  package init(listen: ListenAddress, store: StoreLocation, log: ServiceLog) {
    self.listen = listen
    self.store = store
    self.log = log
  }
}
