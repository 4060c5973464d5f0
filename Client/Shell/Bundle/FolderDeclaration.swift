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

  let name: String
  let version: String
  /// The document that a page load begins with.
  let entry: BundlePath
  /// The services that the pages use.
  let services: [ServicePattern]
  /// The oldest ``Shell/version`` that the pages run on.
  let minShell: Int

  /// Reads the file's bytes. An unknown member is an error, since a later one may restrict the
  /// bundle.
  init(json bytes: [UInt8]) throws(BundleSourceError) {
    let value: ServiceValue
    do throws(MalformedMessage) {
      value = try ServiceValue(json: bytes)
    } catch {
      throw Self.fault(error.description)
    }
    if let fault = Self.schema.fault(in: value) { throw Self.fault(fault) }
    guard let name = value["name"]?.text, Self.isName(name) else {
      throw Self.fault("name has 1 to 64 characters of a-z, 0-9, _ and -")
    }
    guard let version = value["version"]?.text, Self.firstNumber(version) != nil else {
      throw Self.fault("version is one to four numbers with dots, such as \"1.2\"")
    }
    guard let entry = BundlePath(value["entry"]?.text ?? "index.html"),
      ["html", "htm"].contains(entry.fileExtension)
    else { throw Self.fault("entry is the path of an HTML document") }
    guard let minShell = Self.firstNumber(value["minShell"]?.text ?? "1") else {
      throw Self.fault("minShell is a version, such as \"1\"")
    }
    services = try (value["services"]?.list ?? []).map { (value) throws(BundleSourceError) in
      try Self.service(value)
    }
    (self.name, self.version, self.entry, self.minShell) = (name, version, entry, minShell)
  }

  private static func service(_ value: ServiceValue) throws(BundleSourceError) -> ServicePattern {
    let number = value["version"]?.text.map { firstNumber($0) } ?? 1
    guard let name = value["name"]?.text, let number,
      let pattern = ServicePattern(name, version: number)
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

  private static func isName(_ text: String) -> Bool {
    1...64 ~= text.utf8.count && !text.hasPrefix("-") && !text.hasPrefix("_")
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
          UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }

  /// Returns the first number of a version; `nil` if the text is none.
  private static func firstNumber(_ text: String) -> Int? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard 1...4 ~= parts.count,
      parts.allSatisfy({ part in
        1...9 ~= part.utf8.count && part.utf8.allSatisfy { 0x30...0x39 ~= $0 }
          && (part == "0" || !part.hasPrefix("0"))
      })
    else { return nil }
    return Int(parts[0])
  }

  private static func fault(_ reason: String) -> BundleSourceError {
    BundleSourceError(
      "\(fileName) cannot be used", reason: reason,
      next: "correct the file; it has name, version, entry, services and minShell")
  }
}
