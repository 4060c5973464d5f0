import FerryProtocol

/// The file `ferry-bundle.json` of a bundle's folder.
///
/// ```json
/// {"name":"board","version":"1.2","services":[{"name":"data"}],"minShell":"1"}
/// ```
struct FolderDeclaration: Sendable, Equatable {
  /// The file's name.
  static let fileName = "ferry-bundle.json"
  static let servicesMax = 100

  let name: BundleName
  let version: BundleVersion
  /// The first document of a page load.
  let entry: BundlePath
  /// The services used by the pages.
  let services: [ServicePattern]
  /// The oldest ``Shell/version`` for the pages; `nil` for any.
  let minShell: BundleVersion?

  /// Reads the file's bytes. An unknown member is an error, since a later one may restrict the
  /// bundle.
  init(json bytes: [UInt8]) throws(BundleSourceError) {
    let value: ServiceValue
    do throws(MalformedMessage) {
      value = try ServiceValue(json: bytes)
    } catch {
      throw Self.fault("it is not JSON: \(error.aboutFile)")
    }
    if let fault = Self.schema.fault(in: value) { throw Self.fault(fault) }
    guard let name = value["name"]?.text.flatMap({ BundleName($0) }) else {
      throw Self.fault("name has 1 to 64 characters of a-z, 0-9, _ and -")
    }
    guard let version = value["version"]?.text.flatMap({ BundleVersion($0) }) else {
      throw Self.fault("version is one to four numbers with dots, such as \"1.2\"")
    }
    guard let entry = BundlePath(value["entry"]?.text ?? "index.html"),
      entry.isDocument
    else { throw Self.fault("entry is the path of an HTML document") }
    let minShell = value["minShell"]?.text.map { BundleVersion($0) }
    if case .some(nil) = minShell { throw Self.fault("minShell is a version, such as \"1\"") }
    services = try (value["services"]?.list ?? []).map { (value) throws(BundleSourceError) in
      try Self.service(value)
    }
    (self.name, self.version, self.entry) = (name, version, entry)
    self.minShell = minShell ?? nil
  }

  private static func service(_ value: ServiceValue) throws(BundleSourceError) -> ServicePattern {
    let version = value["version"]?.text.map { BundleVersion($0) } ?? .first
    guard let name = value["name"]?.text, let version,
      let pattern = ServicePattern(name, version: version)
    else { throw fault("services has an element that names no service, such as \"data.query\"") }
    return pattern
  }

  private static let schema = ValueSchema.object([
    .required("name", .text(max: 64)), .required("version", .text(max: 40)),
    .optional("entry", .text(max: 1_024)),
    .optional(
      "services",
      .list(
        of: .object([.required("name", .text(max: 64)), .optional("version", .text(max: 40))]),
        max: servicesMax)),
    .optional("minShell", .text(max: 40)),
  ])

  private static func fault(_ reason: String) -> BundleSourceError {
    BundleSourceError(
      "\(fileName) cannot be used", reason: reason,
      next: "correct the file; it has name, version, entry, services and minShell")
  }
}
