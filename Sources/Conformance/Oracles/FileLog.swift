import FerryProtocol

/// What one replica file has recorded, in order, as far as it is still to be answered for.
struct FileLog {
  struct Entry {
    var operation: LocalOperation
    /// Off the device's hands.
    var isConfirmed = false
    /// Another file holds it too: a copy, or the state that this file was in before it went back.
    /// Either may send it, alone or merged with what only that file knows.
    var isShared = false
    /// The server was set back to before it: the device gives it back, if it keeps the file.
    var isRevoked = false
    /// The server refuses it for good, or what it belongs to.
    var isQuarantined = false
  }

  /// What the file knew of the history at one moment.
  private struct Sight {
    let entryCount: Int
    let anchor: Cursor.Anchor?
  }

  let device: String
  private(set) var entries: [Entry] = []
  private var places: [OperationID: Int] = [:]
  /// Under which the file has sent.
  private(set) var identities: [DeviceID] = []
  /// Pending operations that nobody told of.
  private(set) var unheard: Set<OperationID> = []
  private var newestPending: OperationID?
  private var quarantinedCount = 0
  private var refusals: Int64 = 0
  /// Since the server was last set back: how far the file was when it was read.
  private var sights: [Sight]?
  /// Whether the file may have recorded rows that the server had lost.
  var mayRescue: Bool { sights != nil }
  /// Whether nobody works with it any more.
  private(set) var isClosed = false

  init(device: String) { self.device = device }

  mutating func record(_ operations: [LocalOperation]) {
    for operation in operations where places[operation.id] == nil {
      places[operation.id] = entries.count
      entries.append(Entry(operation: operation))
      if !unheard.isEmpty { unheard.remove(operation.id) }
    }
  }

  mutating func confirm(_ ids: [OperationID]) {
    for id in ids { if let place = places[id] { entries[place].isConfirmed = true } }
  }

  mutating func see(_ evidence: ReplicaEvidence) {
    if identities.last != evidence.device { identities.append(evidence.device) }
    for id in evidence.pending.reversed() {
      if id == newestPending { break }
      guard places[id] == nil else { continue }
      if !id.isRescue { unheard.insert(id) }
    }
    newestPending = evidence.pending.last
    seeQuarantine(evidence)
    // An answer that came late may have told of the history that is gone, and nobody saw it: the
    // cursor was refused since.
    if evidence.refusals > refusals {
      refusals = evidence.refusals
      if sights != nil { sights = [] }
    }
    let anchor = evidence.confirmed ?? evidence.anchor
    if let last = sights?.last, last.anchor == anchor { return }
    if !evidence.isReplacing {
      sights?.append(Sight(entryCount: entries.count, anchor: anchor))
    }
  }

  private mutating func seeQuarantine(_ evidence: ReplicaEvidence) {
    guard evidence.quarantined.count != quarantinedCount else { return }
    quarantinedCount = evidence.quarantined.count
    for id in evidence.quarantined {
      if let place = places[id] { entries[place].isQuarantined = true }
    }
  }

  /// The server is at an earlier state of its history.
  mutating func revoke(survivors: Set<OperationID>, shared: Set<OperationID>) {
    sights = []
    for index in entries.indices {
      let id = entries[index].operation.id
      entries[index].isRevoked = !survivors.contains(id)
      if shared.contains(id) { entries[index].isShared = true }
    }
  }

  /// How many of the entries the device had recorded before it knew that the server was set back,
  /// as far as anybody can tell: before the file was seen at a point of the history that there is,
  /// and at none that is gone after that. An answer from before may come late.
  func countUnaware(_ lineage: Lineage, in history: [HistoryEntry]) -> Int {
    guard let sights else { return 0 }
    let known = sights.reversed().prefix { sight in
      guard let anchor = sight.anchor else { return history.isEmpty }
      return lineage.holds(anchor, in: history)
    }
    return known.last?.entryCount ?? entries.count
  }

  /// Operations that another file holds as well from now on.
  mutating func share(_ ids: Set<OperationID>) {
    for index in entries.indices where ids.contains(entries[index].operation.id) {
      entries[index].isShared = true
    }
  }

  /// Begins with what the file holds already. What it keeps in its archive is confirmed.
  mutating func inherit(_ operations: [LocalOperation], _ evidence: ReplicaEvidence) {
    record(operations)
    for index in entries.indices { entries[index].isShared = true }
    confirm(evidence.archived)
    see(evidence)
  }

  /// Nobody works with the file any more: only what was confirmed has to be in the history.
  /// What was merged away counts as confirmed, too.
  mutating func close() {
    isClosed = true
    entries.removeAll { !$0.isConfirmed }
    if sights != nil { sights = [] }
    places = [:]
    for (place, entry) in entries.enumerated() { places[entry.operation.id] = place }
  }
}

/// The logs of all replica files of a run.
struct FileLogs {
  private(set) var files: [FileLog] = []
  private var current: [String: Int] = [:]
  /// All that was ever told of.
  private var operations: [OperationID: LocalOperation] = [:]
  private(set) var lineage = Lineage()
  /// Records that anybody has deleted.
  var deleted: Set<RecordKey> {
    Set(operations.values.lazy.filter { $0.kind == .delete }.map(\.key))
  }

  mutating func see(_ event: RunEvent) {
    switch event {
    case .committed(let device, let recorded):
      files[file(of: device)].record(recorded)
      for operation in recorded { operations[operation.id] = operation }
    case .confirmed(let device, let ids): files[file(of: device)].confirm(ids)
    case .read(let device, let evidence):
      files[file(of: device)].see(evidence)
    case .lostPower(let device, let survivors): branch(device, survivors)
    case .copied(let device, _, let evidence): branch(device, evidence)
    case .serverWentBack(let before, let survivors): revoke(from: before, to: survivors)
    }
  }

  /// How the files are at the end.
  mutating func see(_ final: FinalEvidence) {
    for (name, replica) in final.replicas.sorted(by: { $0.key < $1.key }) {
      files[file(of: name)].see(replica)
    }
  }

  /// A device goes on with a copy of a file, or with an earlier state of its own, which may be one
  /// that it went back from before.
  private mutating func branch(_ device: String, _ evidence: ReplicaEvidence) {
    var copy = FileLog(device: device)
    let held = evidence.archived + evidence.pending
    copy.inherit(held.compactMap { operations[$0] }, evidence)
    if lineage.wentBack { copy.revoke(survivors: [], shared: []) }
    // What both keep in their archives both may send again, where the server was set back.
    let shared = Set(lineage.wentBack ? held : evidence.pending)
    for index in files.indices { files[index].share(shared) }
    if let old = current[device] { files[old].close() }
    current[device] = files.count
    files.append(copy)
  }

  /// What files keep of confirmed operations may be sent again, by each of them.
  private mutating func revoke(from before: [OperationID], to survivors: [OperationID]) {
    lineage.goBack(from: before, to: survivors)
    var seen = Set<OperationID>()
    var shared = Set<OperationID>()
    for file in files {
      for entry in file.entries where !seen.insert(entry.operation.id).inserted {
        shared.insert(entry.operation.id)
      }
    }
    let left = Set(survivors)
    for index in files.indices { files[index].revoke(survivors: left, shared: shared) }
  }

  private mutating func file(of device: String) -> Int {
    if let index = current[device] { return index }
    current[device] = files.count
    files.append(FileLog(device: device))
    return files.count - 1
  }
}

extension OperationID {
  /// Whether it is of a row that a device gave back to a server which had lost it: those are at the
  /// beginning of time (SPEC.md §5).
  var isRescue: Bool { value.timestamp.milliseconds <= HybridTimestamp.rescue.milliseconds }
}

extension OperationID {
  /// Whether it is of what a batch did to one record: UUIDs of version 8 (SPEC.md §14).
  var isEffect: Bool { value.high & 0xF000 == 0x8000 }
}

extension HybridTimestamp {
  /// The latest time of a row that was given back.
  static let rescue = HybridTimestamp(milliseconds: 1)
}
