import FerryPlatform
import FerryProtocol

/// A message of `ferry.js`, with a checked form.
enum BridgeRequest {
  /// The most bytes of a message.
  static let bytesMax = 4 << 20
  /// The most bytes of an upload.
  static let uploadBytesMax = 16 << 20

  /// A call or a live query.
  struct Call: Equatable {
    let service: String
    let argument: ServiceValue
    /// The number of a live query on the page.
    var watch: Int64 = 0
  }

  /// Reads a call.
  static func call(_ body: [UInt8]) throws(ServiceError) -> Call {
    let value = try value(body, callSchema)
    return Call(service: value["service"]?.text ?? "", argument: value["argument"] ?? .null)
  }

  /// Reads a live query.
  static func watch(_ body: [UInt8]) throws(ServiceError) -> Call {
    let value = try value(body, watchSchema)
    return Call(
      service: value["service"]?.text ?? "", argument: value["argument"] ?? .null,
      watch: value["watch"]?.integer ?? 0)
  }

  /// Reads the number of an ending live query.
  static func cancel(_ body: [UInt8]) throws(ServiceError) -> Int64 {
    try value(body, .object([.required("watch", number)]))["watch"]?.integer ?? 0
  }

  /// Reads the failure of a page.
  static func failure(_ body: [UInt8]) throws(ServiceError) -> PageFailure {
    let value = try value(
      body,
      .object([
        .required("kind", .choice(["crashed", "violated"])), .required("detail", .text(max: 4_096)),
      ]))
    let kind = PageFailure.Kind(rawValue: value["kind"]?.text ?? "") ?? .crashed
    return PageFailure(kind, value["detail"]?.text ?? "")
  }

  /// Reads the browser's report of a violation; `nil` for one of an extension of the browser.
  static func report(_ body: [UInt8]) -> PageFailure? {
    guard let value = try? ServiceValue(json: body), let report = value["csp-report"] else {
      return nil
    }
    let directive = report["effective-directive"]?.text ?? report["violated-directive"]?.text ?? ""
    let blocked = report["blocked-uri"]?.text ?? ""
    let source = report["source-file"]?.text ?? ""
    if [blocked, source].contains(where: isOfExtension) { return nil }
    return PageFailure(.violated, "\(directive) \(blocked)")
  }

  private static func isOfExtension(_ address: String) -> Bool {
    address.has("extension:") || address.has("extension://")
      || address.ends(with: "-extension")
  }

  private static let number = ValueSchema.integer(1...9_007_199_254_740_991)
  private static let callSchema = ValueSchema.object([
    .required("service", .text(max: 128)), .optional("argument", .any),
  ])
  private static let watchSchema = ValueSchema.object([
    .required("watch", number), .required("service", .text(max: 128)), .optional("argument", .any),
  ])

  private static func value(
    _ body: [UInt8], _ schema: ValueSchema
  ) throws(ServiceError) -> ServiceValue {
    let value: ServiceValue
    do throws(MalformedMessage) {
      value = try ServiceValue(json: body)
    } catch {
      throw ServiceError.badRequest(error.description)
    }
    if let fault = schema.fault(in: value) { throw ServiceError.badRequest(fault) }
    return value
  }
}
