import FerryProtocol

/// A line from a host; nothing in it is trusted.
enum PatchLine: Equatable, Sendable {
  /// The script calls a service.
  case call(number: Int64, service: String, arguments: [UInt8])
  /// The script's result, as JSON.
  case result([UInt8])
  /// The script threw.
  case thrown(String)
  /// The host could not confine itself.
  case refused(String)

  /// Reads a line without the line end.
  init(decoding bytes: [UInt8]) throws(MalformedMessage) {
    self = try decode(bytes, depth: PatchJSON.depth + 1) { (reader) throws(MalformedMessage) in
      try PatchLine(from: &reader)
    }
  }

  private init(from reader: inout JSONReader) throws(MalformedMessage) {
    var (number, service, text, refusal): (Int64?, String?, String?, String?)
    var (result, arguments): ([UInt8]?, [UInt8]?)
    var members = 0
    try reader.object { (key, reader) throws(MalformedMessage) in
      members += 1
      switch key {
      case "call": number = try reader.integer()
      case "service": service = try reader.string()
      case "arguments": arguments = Array(try reader.skip(refusingRepeats: true))
      case "result": result = Array(try reader.skip(refusingRepeats: true))
      case "thrown": text = try reader.string()
      case "refused": refusal = try reader.string()
      default: throw reader.malformed("an unknown member")
      }
    }
    if members == 3, let number, let service, let arguments {
      self = .call(number: number, service: service, arguments: arguments)
    } else if members == 1, let result {
      self = .result(result)
    } else if members == 1, let text {
      self = .thrown(text)
    } else if members == 1, let refusal {
      self = .refused(refusal)
    } else {
      throw reader.malformed("not a line of a host")
    }
  }
}
