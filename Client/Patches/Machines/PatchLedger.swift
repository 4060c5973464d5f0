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

extension PatchLedger {
  func encoded() -> [UInt8] {
    var json = JSONWriter()
    json.object { json in
      json.member("format", 1)
      json.key("behaviours")
      json.array(of: entries.sorted { $0.key < $1.key }) { json, entry in
        json.object { json in
          json.member("behaviour", entry.key)
          json.member("sequence", entry.value.sequence)
          json.member("sha256", entry.value.digest.description)
          json.member("failures", entry.value.failuresInARow)
          json.member("disabled", entry.value.isDisabled)
        }
      }
    }
    return json.finish()
  }

  init(decoding bytes: [UInt8]) throws(MalformedMessage) {
    self = try decode(bytes, depth: 4) { (reader) throws(MalformedMessage) in
      try reader.patchLedger()
    }
  }

  fileprivate mutating func restore(_ entry: Entry, of behaviour: String) -> Bool {
    entries.count < Self.entriesMax && entries.updateValue(entry, forKey: behaviour) == nil
  }
}

extension JSONReader {
  fileprivate mutating func patchLedger() throws(MalformedMessage) -> PatchLedger {
    var ledger = PatchLedger()
    var format: Int64?
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "format": format = try reader.integer()
      case "behaviours":
        try reader.array { (reader) throws(MalformedMessage) in
          let (behaviour, entry) = try reader.patchLedgerEntry()
          guard ledger.restore(entry, of: behaviour) else {
            throw reader.malformed("a behaviour is repeated, or there are too many")
          }
        }
      default: try reader.skip()
      }
    }
    guard format == 1 else { throw malformed("this is no ledger of format 1") }
    return ledger
  }

  private mutating func patchLedgerEntry() throws(MalformedMessage) -> (
    String, PatchLedger.Entry
  ) {
    var (behaviour, sequence, digest): (String?, Int64?, ContentHash?)
    var (failures, isDisabled) = (0, false)
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "behaviour": behaviour = try reader.string()
      case "sequence": sequence = try reader.integer()
      case "sha256": digest = try reader.contentHash()
      case "failures": failures = try reader.count()
      case "disabled": isDisabled = try reader.bool()
      default: try reader.skip()
      }
    }
    guard let behaviour, PatchName.isValid(behaviour), let sequence, sequence > 0, let digest
    else { throw malformed("an entry has behaviour, sequence and sha256") }
    return (
      behaviour,
      PatchLedger.Entry(
        sequence: sequence, digest: digest, failuresInARow: failures, isDisabled: isDisabled)
    )
  }
}
