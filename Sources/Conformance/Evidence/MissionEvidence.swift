import FerryProtocol

/// What a device's store of missions holds on its disk at one moment, read by somebody who only
/// looks on.
package struct MissionEvidence: Sendable {
  /// A version that the store's rows speak of.
  package struct Version: Sendable {
    package var mission: MissionID
    package var version: Int64
    package var isComplete: Bool
    /// Whether it is the one in use.
    package var isActive: Bool
    /// What its folder holds, by path; `nil` of a version that is not complete.
    package var files: [String: ContentHash]?

    package init(
      mission: MissionID, version: Int64, isComplete: Bool, isActive: Bool,
      files: [String: ContentHash]?
    ) {
      (self.mission, self.version) = (mission, version)
      (self.isComplete, self.isActive, self.files) = (isComplete, isActive, files)
    }
  }

  /// By mission and version.
  package var versions: [Version] = []
  /// Content that the rows speak of.
  package var known: Set<ContentHash> = []
  /// Content that is stored, as it is called, and as it is.
  package var objects: [(name: String, hash: ContentHash)] = []
  /// Files of the device that lie where no file of a mission belongs, or that somebody tried to
  /// reach there.
  package var strays: [String] = []

  package init() {}
}

/// What happens to missions in a run, as the oracles on them are told. Devices are named by the
/// harness.
package enum MissionRunEvent: Sendable {
  /// Somebody is about to publish these files, as whatever version comes next. They may be in force
  /// from now on, whether or not the publisher hears of it.
  case publishing(SpaceName, MissionID, [String: PublishedItem])
  /// Somebody looked at the disk. Looks come at any moment, also right after a process died.
  case looked(device: String, SpaceName, MissionEvidence)
  /// Bytes of content came over the network.
  case fetched(device: String, ContentHash, bytes: Int64)
  /// A transfer of content ended before its end.
  case broken(device: String, ContentHash)
  /// The process was killed, with all its transfers.
  case killed(device: String)
  /// The disk lost what was not synced, failed at a step, or was put back: what was fetched may be
  /// gone.
  case wentBack(device: String)
  /// A mission was given up or removed on purpose, with what was fetched of it.
  case givenUp(device: String, MissionID)
  /// `device` goes on with a copy of another one's disk.
  case copied(device: String, from: String)
  /// How far a mission is, in the words of the product.
  case progress(device: String, MissionVersionName, done: Int64, total: Int64)
  /// An earlier copy of the server's data was put in its place: numbers of versions may be given a
  /// second time.
  case serverWentBack
  /// A mission is not being fetched any more; what comes next begins anew.
  case rested(device: String, MissionID)
}

/// An item as its publisher has it.
package struct PublishedItem: Sendable, Hashable {
  package var hash: ContentHash
  /// Bytes.
  package var size: Int64
  /// Bytes of a part that has a hash of its own; the whole where only that has one.
  package var partSize: Int64

  package init(hash: ContentHash, size: Int64, partSize: Int64) {
    (self.hash, self.size, self.partSize) = (hash, size, partSize)
  }
}

/// A version of a mission.
package struct MissionVersionName: Sendable, Hashable {
  package var mission: MissionID
  package var version: Int64

  package init(_ mission: MissionID, _ version: Int64) {
    (self.mission, self.version) = (mission, version)
  }
}

/// What a run left of missions once everything had drained, for one space.
package struct FinalMissionEvidence: Sendable {
  /// One device.
  package struct Device: Sendable {
    package var name: String
    package var store: MissionEvidence
    /// Versions in the replica's catalogue.
    package var catalogue: [MissionID: Int64]
    /// What its user asked for and did not give up.
    package var wanted: Set<MissionID>
    /// Why a mission is not here, where the product says so.
    package var reasons: [MissionID: String]

    package init(
      name: String, store: MissionEvidence, catalogue: [MissionID: Int64], wanted: Set<MissionID>,
      reasons: [MissionID: String]
    ) {
      (self.name, self.store, self.catalogue) = (name, store, catalogue)
      (self.wanted, self.reasons) = (wanted, reasons)
    }
  }

  /// Versions in force on the server.
  package var published: [MissionID: Int64]
  /// In order.
  package var devices: [Device]

  package init(published: [MissionID: Int64], devices: [Device]) {
    (self.published, self.devices) = (published, devices)
  }
}

/// Judges one property of missions in a run.
package protocol MissionOracle {
  /// In words of the property.
  static var name: String { get }
  /// Looks at what happens while the run goes on.
  mutating func see(_ event: MissionRunEvent) -> [Violation]
  /// Looks at what is left when all has drained.
  mutating func judge(_ final: FinalMissionEvidence) -> [Violation]
}

extension MissionOracle {
  package mutating func see(_ event: MissionRunEvent) -> [Violation] { [] }
  package mutating func judge(_ final: FinalMissionEvidence) -> [Violation] { [] }
}

/// All oracles on the missions of a run.
package struct MissionBench {
  /// Violations that each oracle tells of at the end.
  private static let toldMax = 10

  private var oracles: [any MissionOracle]

  /// - Parameters:
  ///   - marksFrom: bytes from which on a file's parts survive a process.
  ///   - transfers: requests at a time for one file.
  package init(marksFrom: Int64, transfers: Int) {
    oracles = [
      WholeMissions(), MissionsConfined(), ProgressForward(),
      FetchedOnce(marksFrom: marksFrom, transfers: transfers), MissionsDelivered(),
      CatalogueKept(),
    ]
  }

  package mutating func see(_ event: MissionRunEvent) -> [Violation] {
    var found: [Violation] = []
    for index in oracles.indices { found += oracles[index].see(event) }
    return found
  }

  package mutating func judge(_ final: FinalMissionEvidence) -> [Violation] {
    var found: [Violation] = []
    for index in oracles.indices { found += oracles[index].judge(final).prefix(Self.toldMax) }
    return found
  }
}
