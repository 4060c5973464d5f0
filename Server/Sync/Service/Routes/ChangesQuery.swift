import FerryPlatform
import FerryProtocol

/// The query of `GET …/changes`; pure. Unknown names are ignored.
enum ChangesQuery {
  /// Changes of a page when the client names no limit.
  static let limitDefault = 1_000

  /// - Parameter value: The first value of a query parameter, percent-decoded.
  static func read(
    _ value: (String) -> String?, limits: Limits
  ) -> Result<PullRequest, Problem> {
    var request = PullRequest(
      cursor: nil, limit: min(limitDefault, limits.changesPerPage), byteLimit: limits.pageBytes,
      device: nil)
    switch cursor(value) {
    case .success(let cursor): request.cursor = cursor
    case .failure(let problem): return .failure(problem)
    }
    if let text = value("limit") {
      guard text.utf8.first != UInt8(ascii: "+"), let limit = Int(text), limit >= 1 else {
        return .failure(
          Problem(.malformedMessage, "limit is a whole number from 1 to \(limits.changesPerPage)"))
      }
      request.limit = min(limit, limits.changesPerPage)
    }
    if let text = value("device") {
      guard let device = DeviceID(text), device != .server else {
        return .failure(
          Problem(.malformedMessage, "device is a UUID of 36 characters, but not the nil UUID"))
      }
      request.device = device
    }
    if let text = value("former") {
      let names = text.parts(at: ",")
      request.former = names.compactMap { DeviceID($0) }
      guard request.former.count == names.count, names.count <= limits.formerDevices,
        !request.former.contains(.server)
      else {
        return .failure(
          Problem(
            .malformedMessage,
            "former is a list of at most \(limits.formerDevices) UUIDs with commas between them"))
      }
    }
    return .success(request)
  }

  /// Reads the client's cursor; `nil` if the request has none.
  static func cursor(_ value: (String) -> String?) -> Result<Cursor?, Problem> {
    guard let text = value("cursor"), !text.isEmpty else { return .success(nil) }
    guard let cursor = Cursor(text) else {
      return .failure(
        Problem(
          .invalidCursor, "send the cursor of the last page, or no cursor to start from scratch"))
    }
    return .success(cursor)
  }
}
