import Foundation

extension ExportResult {
  /// Reads a collector's answer (OTLP 1.x, "OTLP/HTTP Response").
  ///
  /// - Parameter retryAfter: The header `Retry-After`; only seconds count.
  package init(status: Int, retryAfter: String?, body: [UInt8]) {
    switch status {
    case 200..<300: self = .accepted(rejected: Self.rejected(in: body))
    case 429, 502, 503, 504:
      let pause = retryAfter.flatMap { UInt32($0) }.map { Duration.seconds(Int64($0)) }
      self = .failed("the collector answered with status \(status)", pause: pause)
    default: self = .refused("the collector answered with status \(status)")
    }
  }

  /// Returns the spans in a message of partial success. The number may be a string.
  private static func rejected(in body: [UInt8]) -> Int {
    let answer = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
    let partial = answer?["partialSuccess"] as? [String: Any]
    let number = partial?["rejectedSpans"]
    return (number as? String).flatMap { Int($0) } ?? number as? Int ?? 0
  }
}
