import FerryPlatform
import FerryProtocol

/// The query of a request for a list; pure. Unknown names are ignored.
struct InspectionQuery {
  /// Entries of one answer.
  static let limitDefault = 100
  static let limitMax = 500
  /// Characters of records, operations or conflicts in one answer; one entry may be longer.
  static let characters = 1 << 20
  /// Places of the history examined by one request.
  static let stretch: Int64 = 20_000

  let values: [String: String]

  /// Returns the number of entries to return.
  func limit() throws(Problem) -> Int {
    guard let text = values["limit"] else { return Self.limitDefault }
    return Int(try Self.number(text, "limit", in: 1...Int64(Self.limitMax)))
  }

  /// Reads a whole number within the range: digits only, as in openapi.yaml.
  static func number(
    _ text: String, _ parameter: String, in range: ClosedRange<Int64>
  ) throws(Problem) -> Int64 {
    // `Int64` takes a plus sign as well.
    guard text.utf8.first != UInt8(ascii: "+"), let number = Int64(text), range.contains(number)
    else {
      let end = range.upperBound == .max ? "up" : "to \(range.upperBound)"
      throw Problem(
        .malformedMessage, "\(parameter) is a whole number from \(range.lowerBound) \(end)")
    }
    return number
  }

  /// Returns a mandatory name of the request.
  func name(_ parameter: String, _ what: String) throws(Problem) -> Name {
    guard let text = values[parameter], !text.isEmpty else {
      throw Problem(.malformedMessage, "\(parameter) is \(what)")
    }
    return Name(text)
  }

  /// Returns a place in the order; `nil` if the request gives none.
  func place(_ parameter: String) throws(Problem) -> SequenceNumber? {
    guard let text = values[parameter] else { return nil }
    guard let place = SequenceNumber(text), 0...Limits.sequenceMax ~= place else {
      throw Problem(.malformedMessage, "\(parameter) is a place in the space's order")
    }
    return place
  }

  func device(_ parameter: String) throws(Problem) -> DeviceID? {
    guard let text = values[parameter] else { return nil }
    guard let device = DeviceID(text) else {
      throw Problem(.malformedMessage, "\(parameter) is a device: a UUID of 36 characters")
    }
    return device
  }

  /// Returns the place after which a list of conflicts continues.
  func conflictPlace() throws(Problem) -> ConflictPlace? {
    guard let (number, device) = try pair("before") else { return nil }
    guard let device = DeviceID(device), number <= Limits.sequenceMax else {
      throw Self.notNext("before")
    }
    return ConflictPlace(sequence: number, device: device)
  }

  /// Returns the place after which a list of rejections continues.
  func rejectionPlace() throws(Problem) -> RejectionPlace? {
    try pair("before").map { RejectionPlace(lastAt: $0.0, subject: $0.1) }
  }

  func unit() throws(Problem) -> ActivityUnit {
    guard let text = values["unit"] else { return .hour }
    guard let unit = ActivityUnit(rawValue: text) else {
      throw Problem(.malformedMessage, "unit is minute or hour")
    }
    return unit
  }

  /// Returns a moment, milliseconds since 1970; `nil` if the request gives none.
  func moment(_ parameter: String) throws(Problem) -> Int64? {
    guard let text = values[parameter] else { return nil }
    return try Self.number(text, parameter, in: 0...Int64.max)
  }

  private func pair(_ parameter: String) throws(Problem) -> (Int64, String)? {
    guard let text = values[parameter] else { return nil }
    let parts = text.parts(at: "/", most: 2)
    guard parts.count == 2, !parts[1].isEmpty, let number = Int64(parts[0]), number >= 0 else {
      throw Self.notNext(parameter)
    }
    return (number, String(parts[1]))
  }

  private static func notNext(_ parameter: String) -> Problem {
    Problem(.malformedMessage, "\(parameter) is the member next of an earlier answer")
  }
}
