/// The head of a request, with a checked form.
struct RequestHead: Sendable, Equatable {
  enum Method: String, Sendable { case get = "GET", head = "HEAD", post = "POST" }

  var method: Method
  /// The path as sent: it begins with a slash and has no query.
  var target: String
  var fields: [Field] = []
  /// The declared bytes of the body.
  var contentLength = 0

  struct Field: Sendable, Equatable {
    /// In lower case.
    var name: String
    var value: String
  }

  /// Returns the value of a field; `nil` if it is absent or is a duplicate.
  subscript(name: String) -> String? {
    let found = fields.filter { $0.name == name }
    return found.count == 1 ? found[0].value : nil
  }

  /// Returns true if there is a field of this name, perhaps a duplicate.
  func has(_ name: String) -> Bool { fields.contains { $0.name == name } }
}
