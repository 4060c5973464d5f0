import FerryProtocol

/// The operations recorded in one replica file, in order, as long as the oracles need them.
struct FileLog {
  struct Entry {
    var operation: LocalOperation
    /// The device no longer has to send it.
    var isConfirmed = false
    /// Another file holds it too: a copy, or the state before this file went back. Either may send
    /// it, alone or merged with operations known only there.
    var isShared = false
    /// The server was rolled back to before it: the device re-uploads it, if it keeps the file.
    var isRevoked = false
    /// The server rejected it or the whole transaction.
    var isQuarantined = false
  }

  /// The file's knowledge of the history at one moment.
  private struct Sight {
    let entryCount: Int
    let anchor: Cursor.Anchor?
  }

  let device: String
  private(set) var entries: [Entry] = []
  private var places: [OperationID: Int] = [:]
  /// Identities under which the file has sent, also before it was copied.
  private(set) var identities: [DeviceID]
  /// Operations not reported by the harness: those seen in the queue, or in the archive of a copy or
  /// at the end. A pull records them, for example.
  private(set) var unheard: Set<OperationID> = []
  private var newestPending: OperationID?
  private var quarantinedCount = 0
  private var refusals: Int64 = 0
  /// Since the server was last rolled back: the file's progress at each read.
  private var sights: [Sight]?
  /// True if the file may have recorded rows lost by the server.
  var mayRescue: Bool { sights != nil }
  /// True if the file is no longer in use.
  private(set) var isClosed = false

  init(device: String, identities: [DeviceID] = []) {
    (self.device, self.identities) = (device, identities)
  }

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
      hear(id)
    }
    for id in evidence.archived { hear(id) }
    newestPending = evidence.pending.last
    seeQuarantine(evidence)
    // A late response may have named the lost history unnoticed: the cursor was refused since.
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

  private mutating func hear(_ id: OperationID) {
    if places[id] == nil && !id.isRescue { unheard.insert(id) }
  }

  private mutating func seeQuarantine(_ evidence: ReplicaEvidence) {
    guard evidence.quarantined.count != quarantinedCount else { return }
    quarantinedCount = evidence.quarantined.count
    for id in evidence.quarantined {
      if let place = places[id] { entries[place].isQuarantined = true }
    }
  }

  /// Records an earlier state of the server's history.
  mutating func revoke(survivors: Set<OperationID>, shared: Set<OperationID>) {
    sights = []
    for index in entries.indices {
      let id = entries[index].operation.id
      entries[index].isRevoked = !survivors.contains(id)
      if shared.contains(id) { entries[index].isShared = true }
    }
  }

  /// Counts the entries recorded by the device before it learnt of the server's rollback, as far as
  /// the evidence shows.
  ///
  /// Those are the entries before the file was seen at a present point of the history and at no
  /// lost point after that. A response from before may come late.
  func countUnaware(_ lineage: Lineage, in history: [HistoryEntry]) -> Int {
    guard let sights else { return 0 }
    let known = sights.reversed().prefix { sight in
      guard let anchor = sight.anchor else { return history.isEmpty }
      return lineage.holds(anchor, in: history)
    }
    return known.last?.entryCount ?? entries.count
  }

  /// Records operations held by another file as well from now on.
  mutating func share(_ ids: Set<OperationID>) {
    for index in entries.indices where ids.contains(entries[index].operation.id) {
      entries[index].isShared = true
    }
  }

  /// Begins with the operations already in the file. Those in the archive are confirmed.
  mutating func inherit(_ operations: [LocalOperation], _ evidence: ReplicaEvidence) {
    record(operations)
    for index in entries.indices { entries[index].isShared = true }
    confirm(evidence.archived)
    see(evidence)
  }

  /// Closes a file out of use: only the confirmed operations have to be in the history. Operations
  /// that were merged away count as confirmed, too.
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
  /// All operations ever reported.
  private var operations: [OperationID: LocalOperation] = [:]
  private(set) var lineage = Lineage()
  /// Records deleted by any device.
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
    case .lostPower(let device, let survivors): branch(device, from: device, survivors)
    case .copied(let device, let original, let evidence): branch(device, from: original, evidence)
    case .serverWentBack(let before, let survivors): revoke(from: before, to: survivors)
    case .serverLies: lineage.doubt()
    }
  }

  /// Reads the state of the files at the end.
  mutating func see(_ final: FinalEvidence) {
    for (name, replica) in final.replicas.sorted(by: { $0.key < $1.key }) {
      files[file(of: name)].see(replica)
    }
  }

  /// Records a device's step to a copy of a file, or to an earlier state. It may have left this
  /// state before.
  private mutating func branch(
    _ device: String, from original: String, _ evidence: ReplicaEvidence
  ) {
    let identities = current[original].map { files[$0].identities } ?? []
    var copy = FileLog(device: device, identities: identities)
    let held = evidence.archived + evidence.pending
    copy.inherit(held.compactMap { operations[$0] }, evidence)
    if lineage.wentBack { copy.revoke(survivors: [], shared: []) }
    // Both files may send operations of both archives again, if the server was rolled back.
    let shared = Set(lineage.wentBack ? held : evidence.pending)
    for index in files.indices { files[index].share(shared) }
    if let old = current[device] { files[old].close() }
    current[device] = files.count
    files.append(copy)
  }

  /// Revokes lost operations: each file may send those again that it keeps as confirmed.
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
    var log = FileLog(device: device)
    // The file may have been in use before the server went back, and was not reported until now.
    if lineage.wentBack { log.revoke(survivors: [], shared: []) }
    files.append(log)
    return files.count - 1
  }
}

extension OperationID {
  /// True for a row re-uploaded by a device to a server without it. Those are at the beginning of
  /// time (SPEC.md §5).
  var isRescue: Bool { value.timestamp.milliseconds <= HybridTimestamp.rescue.milliseconds }
}

extension OperationID {
  /// True if it is of a batch's effect on one record: UUIDs of version 8 (SPEC.md §14).
  var isEffect: Bool { value.high & 0xF000 == 0x8000 }
}

extension HybridTimestamp {
  /// The latest time of a re-uploaded row.
  static let rescue = HybridTimestamp(milliseconds: 1)
}
