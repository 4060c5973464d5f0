extension ShellResponse {
  /// Creates an answer with content, or with the requested part.
  ///
  /// - Parameter isOfBundle: true for a file of the bundle; it may be a script.
  static func content(
    _ content: ServedContent, range: String?, isOfBundle: Bool = false
  ) -> ShellResponse {
    let type = isOfBundle ? content.mediaType : WebMediaType.passive(content.mediaType)
    var response = ShellResponse(status: 200)
    response.fields = [("Content-Type", type), ("Accept-Ranges", "bytes")]
    if !isOfBundle { response.fields.append(ContentPolicy.ofContent) }
    switch ByteRange(range, size: content.size) {
    case .all: response.body = .content(content, 0..<content.size)
    case .part(let part):
      response.status = 206
      response.body = .content(content, part)
      let last = part.upperBound - 1
      response.fields.append(
        ("Content-Range", "bytes \(part.lowerBound)-\(last)/\(content.size)"))
    case .unsatisfiable:
      response.status = 416
      response.fields.append(("Content-Range", "bytes */\(content.size)"))
    }
    return response
  }
}
