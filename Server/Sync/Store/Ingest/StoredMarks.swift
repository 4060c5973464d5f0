import FerryProtocol

extension Operation {
  /// Returns the marks of its columns as JSON with the members `adds` and `originals` of SPEC.md
  /// §4. A member is absent if it is empty; `nil` if both are.
  func encodedMarks() -> [UInt8]? {
    if increments.isEmpty && originals.isEmpty { return nil }
    var json = JSONWriter(capacity: 64)
    var first = true
    json.raw("{")
    if !increments.isEmpty {
      json.separate(&first)
      json.raw("\"adds\":")
      json.increments(increments)
    }
    if !originals.isEmpty {
      json.separate(&first)
      json.raw("\"originals\":")
      json.columns(originals)
    }
    json.raw("}")
    return json.finish()
  }
}
