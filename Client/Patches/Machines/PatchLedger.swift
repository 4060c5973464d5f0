import FerryProtocol

/// The app's memory of patches, beyond the life of the process: the newest patch of each behaviour
/// so far, and the patch's failures; pure (SPEC.md §34).
struct PatchLedger: Sendable, Equatable {
  struct Entry: Sendable, Equatable {
    /// The highest sequence ever accepted.
    var sequence: Int64
    /// The document with this sequence.
    var digest: ContentHash
    var failuresInARow = 0
    /// True if it failed too often. A patch with a higher sequence is enabled again.
    var isDisabled = false
  }

  /// The most behaviours in a ledger.
  static let entriesMax = 1_000

  private(set) var entries: [String: Entry] = [:]

  init() {}

  /// Records a patch in force. A newer one begins without failures.
  mutating func accept(_ behaviour: String, sequence: Int64, digest: ContentHash) {
    guard sequence > entries[behaviour]?.sequence ?? 0 else { return }
    entries[behaviour] = Entry(sequence: sequence, digest: digest)
  }

  /// Records a successful call of this patch. Returns true if the ledger has changed.
  mutating func recordSuccess(_ behaviour: String, sequence: Int64) -> Bool {
    guard var entry = entries[behaviour], entry.sequence == sequence, entry.failuresInARow > 0,
      !entry.isDisabled
    else { return false }
    entry.failuresInARow = 0
    entries[behaviour] = entry
    return true
  }

  /// Records a failed call of this patch. Returns true if the ledger has changed.
  mutating func recordFailure(_ behaviour: String, sequence: Int64, limit: Int) -> Bool {
    guard var entry = entries[behaviour], entry.sequence == sequence, !entry.isDisabled else {
      return false
    }
    entry.failuresInARow += 1
    entry.isDisabled = entry.failuresInARow >= limit
    entries[behaviour] = entry
    return true
  }

  /// Enables a disabled patch again. Returns true if the ledger has changed.
  mutating func enable(_ behaviour: String) -> Bool {
    guard var entry = entries[behaviour], entry.isDisabled || entry.failuresInARow > 0 else {
      return false
    }
    (entry.failuresInARow, entry.isDisabled) = (0, false)
    entries[behaviour] = entry
    return true
  }
}

extension PatchLedger: JSONMessage {
  static let depth: Int? = 4
  static let noun: String? = "the ledger"
  static var blank: Self { Self() }

  mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    var list = entries.sorted { $0.key < $1.key }.map(Line.init)
    try json.format(1)
    let form = JSONForm.list(max: Self.entriesMax, "behaviours").checked { (list: [Line], _) in
      Set(list.map(\.behaviour)).count < list.count ? "a behaviour is repeated" : nil
    }
    try json.defaulted("behaviours", &list, as: form)
    entries = Dictionary(list.map { ($0.behaviour, $0.entry) }) { first, _ in first }
  }

  private struct Line: JSONMessage {
    var behaviour: String
    var entry: Entry

    init(_ behaviour: String, _ entry: Entry) {
      (self.behaviour, self.entry) = (behaviour, entry)
    }

    static var blank: Self { Self("", Entry(sequence: 0, digest: .blank)) }

    mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
      try json.required("behaviour", &behaviour)
      try json.required("sequence", &entry.sequence, as: .integer(in: 1...Int64.max))
      try json.required("sha256", &entry.digest)
      try json.defaulted("failures", &entry.failuresInARow)
      try json.defaulted("disabled", &entry.isDisabled)
      try json.check(PatchName.isValid(behaviour), PatchName.rule)
    }
  }
}
