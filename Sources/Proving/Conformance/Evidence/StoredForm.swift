import FerryProtocol

/// Reads the stored forms of operations (JSON, in stores and replicas) and of record states
/// (binary, in stores).
enum StoredForm {
  /// It was checked when it came in, perhaps against other limits.
  static let limits: Limits = {
    var limits = Limits()
    limits.valueBytes = .max
    limits.columns = .max
    limits.nameBytes = .max
    return limits
  }()

  static func columns(_ text: UnsafeRawBufferPointer) throws -> [Column] {
    var reader = JSONReader(text)
    let columns = try reader.columns(limits: limits)
    try reader.end()
    return columns
  }

  static func times(_ text: UnsafeRawBufferPointer) throws -> [Name: HybridTimestamp] {
    var reader = JSONReader(text)
    var times: [Name: HybridTimestamp] = [:]
    try reader.object { (name, reader) throws(MalformedMessage) in
      times[try name.name()] = try reader.timestamp()
    }
    try reader.end()
    return times
  }

  /// Returns the increment columns of an operation, from the stored marks.
  static func increments(_ text: UnsafeRawBufferPointer) throws -> Set<Name> {
    var reader = JSONReader(text)
    var increments: Set<Name> = []
    try reader.object { (name, reader) throws(MalformedMessage) in
      switch name {
      case "adds": increments = try SyncOperation.increments(from: &reader, limits: limits)
      default: try reader.skip()
      }
    }
    try reader.end()
    return increments
  }

  /// Returns the reason of an operation, from the stored marks; `nil` without one.
  static func reason(_ text: UnsafeRawBufferPointer) throws -> String? {
    var reader = JSONReader(text)
    var reason: String?
    try reader.object { (name, reader) throws(MalformedMessage) in
      switch name {
      case "reason": reason = try reader.string()
      default: try reader.skip()
      }
    }
    try reader.end()
    return reason
  }

  /// Returns the increment columns of a replica, from the stored marks.
  static func marks(_ text: UnsafeRawBufferPointer) throws -> Set<Name> {
    var reader = JSONReader(text)
    var increments: Set<Name> = []
    try reader.array { (reader) throws(MalformedMessage) in
      let mark = try reader.string().unicodeScalars
      if mark.first == "+" { increments.insert(Name(String(mark.dropFirst()))) }
    }
    try reader.end()
    return increments
  }

  static func outcome(_ text: UnsafeRawBufferPointer) throws -> Outcome {
    var reader = JSONReader(text)
    let outcome = try Outcome(from: &reader, limits: limits)
    try reader.end()
    return outcome
  }

  static func state(_ bytes: UnsafeRawBufferPointer) throws -> RecordState {
    try RecordState(stored: bytes, limits: limits)
  }

  /// Reads the columns of an operation. Those of a batch's own row are in the rows of the effects.
  static func columns(
    _ text: UnsafeRawBufferPointer, of kind: OperationKind
  ) throws -> [Column] {
    kind == .batch ? [] : try columns(text)
  }

  /// Returns the kind by the number in a store.
  static func kind(_ code: Int64) throws -> OperationKind {
    switch code {
    case 0: .insert
    case 1: .update
    case 2: .delete
    case 3: .batch
    default: throw UnreadableEvidence("\(code) is not a kind of operation")
    }
  }

  static func time(_ stored: Int64) -> HybridTimestamp {
    HybridTimestamp(rawValue: UInt64(bitPattern: stored))
  }
}
