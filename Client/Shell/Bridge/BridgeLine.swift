import FerryProtocol

/// The lines of a page's stream.
enum BridgeLine {
  /// The page's version has failed: the page loads again.
  static let reload = object { $0.member("reload", true) }
  /// The stream is open.
  static let hello = object { $0.member("shell", Shell.version.description) }

  /// Returns the line of a live query's result.
  static func value(_ value: ServiceValue, watch: Int64) -> [UInt8] {
    object {
      $0.member("watch", watch)
      $0.member("value", value)
    }
  }

  /// Returns the line of a live query's failure.
  static func failure(_ error: ServiceError, watch: Int64) -> [UInt8] {
    object {
      $0.member("watch", watch)
      $0.failure(error)
    }
  }

  /// Returns the line of a live query's end.
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
