import FerryProtocol

extension SyncOperation {
  /// Returns the marks of all columns as JSON with the members `adds`, `originals` and `reason` of
  /// SPEC.md §4. An empty member is absent; `nil` if all are.
  func encodedMarks() -> [UInt8]? {
    if increments.isEmpty && originals.isEmpty && reason == nil { return nil }
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
      if let reason { json.member("reason", reason) }
    }
    return json.finish()
  }
}
