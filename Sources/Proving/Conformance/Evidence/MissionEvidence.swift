import FerryProtocol

/// The content of a device's mission store on the disk at one moment, read by an observer.
package struct MissionEvidence: Sendable {
  /// A version named in the store's rows.
  package struct Version: Sendable {
    package var mission: MissionID
    package var version: Int64
    package var isComplete: Bool
    /// True if it is the one in use.
    package var isActive: Bool
    /// The files of the folder, by path; `nil` for an incomplete version.
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
  /// The missions whose rows name each content.
  package var owners: [ContentHash: Set<MissionID>] = [:]
  /// The content with a file: complete, or in part.
  package var stored: Set<ContentHash> = []
  /// Complete content: the file name, and the hash of the bytes.
  package var objects: [(name: String, hash: ContentHash)] = []
  /// Files of the device outside of the folders for files of missions, and attempts to reach such
  /// paths.
  package var strays: [String] = []

  package init() {}
}

/// An event of missions in a run, as the oracles receive it. Devices are named by the harness.
package enum MissionRunEvent: Sendable {
  /// A publisher is about to publish these files as the next version. They may be in force from now
  /// on, whether or not the publisher receives the response.
  case publishing(SpaceName, MissionID, [String: PublishedItem])
  /// The harness looked at the disk. Looks come at any moment, also right after a process died.
  case looked(device: String, SpaceName, MissionEvidence)
  /// The process is about to remove a file of content, which these missions' rows name now.
  case removing(device: String, ContentHash, owners: Set<MissionID>)
  /// Bytes of content came over the network.
  case fetched(device: String, ContentHash, bytes: Int64)
  /// A transfer of content ended too early.
  case broken(device: String, ContentHash)
  /// The process was killed, with all transfers.
  case killed(device: String)
  /// The disk lost unsynced data, or failed at a step: fetched content may be gone.
  case wentBack(device: String)
  /// The disk was copied to a backup, perhaps within a transfer.
  case backedUp(device: String, to: String)
  /// The disk was restored from a backup. The machine may have started again since the backup.
  case restored(device: String, from: String, isOtherBoot: Bool)
  /// A mission was cancelled or removed on purpose, with the fetched content.
  case givenUp(device: String, MissionID)
  /// `device` continues with a copy of another device's disk.
  case copied(device: String, from: String)
  /// The progress of a mission, as the product reports it.
  case progress(device: String, MissionVersionName, done: Int64, total: Int64)
  /// The server's data was restored from a backup: numbers of versions may be assigned a second
  /// time.
  case serverWentBack
  /// A mission is not being fetched any more; the next progress begins again at 0.
  case rested(device: String, MissionID)
}

/// An item as the publisher has it.
package struct PublishedItem: Sendable, Hashable {
  package var hash: ContentHash
  /// Bytes.
  package var size: Int64
  /// Bytes of a part with a separate hash; the whole size if only the whole has a hash.
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

/// The missions of one space at the end of a run, when everything has drained.
package struct FinalMissionEvidence: Sendable {
  /// One device.
  package struct Device: Sendable {
    package var name: String
    package var store: MissionEvidence
    /// Versions in the replica's catalogue.
    package var catalogue: [MissionID: Int64]
    /// The missions requested and not cancelled by the user.
    package var wanted: Set<MissionID>
    /// The product's reasons for missing missions on the device.
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
  /// A name of the property.
  static var name: String { get }
  /// Reads an event while the run goes on.
  mutating func see(_ event: MissionRunEvent) -> [Violation]
  /// Reads the state at the end, when everything has drained.
  mutating func judge(_ final: FinalMissionEvidence) -> [Violation]
}

extension MissionOracle {
  package mutating func see(_ event: MissionRunEvent) -> [Violation] { [] }
  package mutating func judge(_ final: FinalMissionEvidence) -> [Violation] { [] }
}

/// All oracles on the missions of a run.
package struct MissionBench {
  /// Violations reported by each oracle at the end.
  private static let reportedMax = 10

  private var oracles: [any MissionOracle]

  /// - Parameters:
  ///   - marksFrom: Bytes from which on a file's parts survive a process.
  ///   - transfers: Requests at a time for one file.
  ///   - arrivalMax: The most bytes of a file to arrive at once.
  package init(marksFrom: Int64, transfers: Int, arrivalMax: Int) {
    oracles = [
      WholeMissions(), MissionsConfined(), ProgressForward(),
      FetchedOnce(marksFrom: marksFrom, transfers: transfers, arrivalMax: arrivalMax),
      MissionsDelivered(),
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
    for index in oracles.indices { found += oracles[index].judge(final).prefix(Self.reportedMax) }
    return found
  }
}
