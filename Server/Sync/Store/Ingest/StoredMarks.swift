import FerryProtocol

extension SyncOperation {
  /// Returns the marks of all columns as JSON with the members `adds` and `originals` of SPEC.md
  /// §4. An empty member is absent; `nil` if both are.
  func encodedMarks() -> [UInt8]? {
    if increments.isEmpty && originals.isEmpty { return nil }
    var json = JSONWriter(capacity: 64)
    json.object { json in
      if !increments.isEmpty {
        json.key("adds")
        json.increments(increments)
      }
      if !originals.isEmpty {
        json.key("originals")
        json.columns(originals)
      }
    }
    return json.finish()
  }
}
