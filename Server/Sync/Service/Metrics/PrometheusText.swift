/// A writer of the Prometheus text exposition format 0.0.4.
struct PrometheusText {
  /// The format's media type.
  static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

  /// Names and values, in the order in which they are written.
  typealias Labels = [(name: String, value: String)]

  private(set) var text = ""

  /// Begins a metric; samples follow.
  mutating func metric(_ name: String, _ type: String, _ help: String) {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
  }

  mutating func sample(_ name: String, _ value: some BinaryInteger, _ labels: Labels = []) {
    line(name, labels, String(value))
  }

  mutating func sample(_ name: String, _ value: Double, _ labels: Labels = []) {
    line(name, labels, value.description)
  }

  /// Writes the samples of a histogram; the buckets are cumulative.
  mutating func samples(_ name: String, _ histogram: Histogram, _ labels: Labels = []) {
    var below = 0
    for (index, count) in histogram.counts.enumerated() {
      below += count
      let bound = index < histogram.bounds.count ? histogram.bounds[index].description : "+Inf"
      sample("\(name)_bucket", below, labels + [("le", bound)])
    }
    sample("\(name)_sum", histogram.sum, labels)
    sample("\(name)_count", below, labels)
  }

  private mutating func line(_ name: String, _ labels: Labels, _ value: String) {
    text += name
    if !labels.isEmpty {
      text += "{"
      text += labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",")
      text += "}"
    }
    text += " \(value)\n"
  }

  private static func escaped(_ value: String) -> String {
    var result = ""
    for scalar in value.unicodeScalars {
      switch scalar {
      case "\\": result += "\\\\"
      case "\"": result += "\\\""
      case "\n": result += "\\n"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
