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
  }

  let device: String
  private(set) var entries: [Entry] = []
  private var places: [OperationID: Int] = [:]
  /// Under which the file has sent.
  private(set) var identities: [DeviceID] = []
  /// Pending operations that nobody told of.
  private(set) var unheard: Set<OperationID> = []
  private var newestPending: OperationID?

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
      if places[id] == nil { unheard.insert(id) }
    }
    newestPending = evidence.pending.last
  }

  /// Operations that another file holds as well from now on.
  mutating func share(_ ids: Set<OperationID>) {
    for index in entries.indices where ids.contains(entries[index].operation.id) {
      entries[index].isShared = true
    }
  }

  /// Begins with what the file holds already.
  mutating func inherit(_ operations: [LocalOperation], _ evidence: ReplicaEvidence) {
    record(operations)
    for index in entries.indices { entries[index].isShared = true }
    see(evidence)
  }

  /// Nobody works with the file any more: only what was confirmed has to be in the history.
  /// What was merged away counts as confirmed, too.
  mutating func close() {
    entries.removeAll { !$0.isConfirmed }
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

  mutating func see(_ event: RunEvent) {
    switch event {
    case .committed(let device, let recorded):
      files[file(of: device)].record(recorded)
      for operation in recorded { operations[operation.id] = operation }
    case .confirmed(let device, let ids): files[file(of: device)].confirm(ids)
    case .read(let device, let evidence): files[file(of: device)].see(evidence)
    case .lostPower(let device, let survivors): branch(device, survivors)
    case .copied(let device, _, let evidence): branch(device, evidence)
    }
  }

  /// A device goes on with a copy of a file, or with an earlier state of its own, which may be one
  /// that it went back from before.
  private mutating func branch(_ device: String, _ evidence: ReplicaEvidence) {
    var copy = FileLog(device: device)
    copy.inherit(evidence.pending.compactMap { operations[$0] }, evidence)
    let pending = Set(evidence.pending)
    for index in files.indices { files[index].share(pending) }
    if let old = current[device] { files[old].close() }
    current[device] = files.count
    files.append(copy)
  }

  private mutating func file(of device: String) -> Int {
    if let index = current[device] { return index }
    current[device] = files.count
    files.append(FileLog(device: device))
    return files.count - 1
  }
}
