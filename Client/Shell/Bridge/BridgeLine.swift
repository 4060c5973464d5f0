import FerryProtocol

/// The lines of a page's stream.
enum BridgeLine {
  /// The page's version has failed: the page loads again.
  static let reload = object { $0.member("reload", true) }
  /// The stream is open.
  static let hello = object { $0.member("shell", Shell.version.description) }

  /// A result of a live query.
  static func value(_ value: ServiceValue, watch: Int64) -> [UInt8] {
    object {
      $0.member("watch", watch)
      $0.member("value", value)
    }
  }

  /// The failure of a live query.
  static func failure(_ error: ServiceError, watch: Int64) -> [UInt8] {
    object {
      $0.member("watch", watch)
      $0.failure(error)
    }
  }

  /// The end of a live query.
  static func end(watch: Int64) -> [UInt8] {
    object {
      $0.member("watch", watch)
      $0.member("end", true)
    }
  }

  private static func object(_ members: (inout JSONWriter) -> Void) -> [UInt8] {
    var json = JSONWriter()
    json.object(members)
    return json.finish()
  }
}
