import FerryProtocol

/// How a server runs.
package struct FerryServerConfiguration: Sendable {
  package var listen: ListenAddress
  package var store: StoreLocation
  /// Whether to serve without tokens also where others than this machine can connect.
  package var isInsecure = false
  /// Threads that read and write sockets.
  package var threads = 2
  /// Connections at once; each listener to events holds one.
  package var connectionLimit = 4_096
  /// Between two comments on an idle stream of events.
  package var heartbeat = Duration.seconds(15)
  /// How long requests in progress may take when the server stops.
  package var stopGrace = Duration.seconds(20)
  /// How long a database that is away is waited for at the start.
  package var startWait = Duration.seconds(30)
  /// Between two runs of the pruner.
  package var pruneInterval = Pruner.Pace.standard.interval
  /// Where missions' content lies; `nil` for `blobs` in the directory of the embedded store that
  /// the server opens, and for nowhere with another store.
  package var blobs: String?
  /// The key that signs missions; `nil` for one beside their content.
  package var missionKey: String?
  /// Bytes that a space's unfinished uploads may have together.
  package var uploadQuota = MissionDesk.uploadQuotaStandard
  /// Between two runs that remove content which no space needs any more.
  package var collectInterval = Duration.seconds(3_600)
  package var limits = Limits.standard
  package var clock = ServiceClock.system
  package var log: ServiceLog

  /// - Parameter log: Where lines go; see the properties for the rest.
  package init(listen: ListenAddress, store: StoreLocation, log: ServiceLog) {
    self.listen = listen
    self.store = store
    self.log = log
  }
}
