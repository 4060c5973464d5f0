import FerryProtocol

/// Checks of JSON between an app and a script; pure.
enum PatchJSON {
  /// The deepest nesting that either side may send.
  static let depth = 64
  /// The largest integer in JavaScript's numbers together with both neighbours: 2^53 − 1.
  static let integerMax: Int64 = (1 << 53) - 1

  /// Returns the reason why a value cannot go to a script; `nil` if it can.
  ///
  /// A larger integer would reach the script as another number.
  static func fault(inInput json: [UInt8]) -> String? {
    if let fault = fault(inValue: json) { return fault }
    var place = 0
    while place < json.count {
      switch json[place] {
      case 0x22: place = endOfString(json, from: place)
      case 0x2D, 0x30...0x39:
        let start = place
        while place < json.count, isNumberPart(json[place]) { place += 1 }
        if !isExact(json[start..<place]) {
          let number = String(decoding: json[start..<place].prefix(40), as: UTF8.self)
          return "\(number) is beyond 2^53, so a script would see another number"
        }
      default: place += 1
      }
    }
    return nil
  }

  /// Returns the reason why bytes are not one value within the depth; `nil` if they are.
  static func fault(inValue json: [UInt8]) -> String? {
    do throws(MalformedMessage) {
      try decode(json, depth: depth) { (reader) throws(MalformedMessage) in
        _ = try reader.skip(refusingRepeats: true)
      }
      return nil
    } catch {
      return error.description
    }
  }

  private static func endOfString(_ json: [UInt8], from start: Int) -> Int {
    var place = start + 1
    while place < json.count, json[place] != 0x22 { place += json[place] == 0x5C ? 2 : 1 }
    return place + 1
  }

  private static func isNumberPart(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x2B, 0x2D, 0x2E, 0x45, 0x65: true
    default: false
    }
  }

  private static func isExact(_ number: ArraySlice<UInt8>) -> Bool {
    // A number with a point or an exponent is a double on both sides.
    guard !number.contains(where: { $0 == 0x2E || $0 == 0x45 || $0 == 0x65 }) else { return true }
    guard let value = Int64(String(decoding: number, as: UTF8.self)) else { return false }
    return value.magnitude <= integerMax.magnitude
  }
}
