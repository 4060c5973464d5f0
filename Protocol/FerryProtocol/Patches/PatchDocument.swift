/// A patch in the form signed by the author: a script that replaces one behaviour of an app until
/// the app's next release (SPEC.md §34).
package struct PatchDocument: Sendable, Equatable {
  /// The type in the header of the signature.
  package static let signatureType = "ferry-patch"

  /// The app, such as `org.example.shop`.
  package var app: String
  /// The releases of the app for this patch, exactly as the app names them.
  package var appVersions: [String]
  /// The name of the behaviour, as registered by the app.
  package var behaviour: String
  /// Counts up with each patch of the behaviour, so an older one never replaces a newer one.
  package var sequence: Int64
  /// When it ends, in milliseconds since 1970.
  package var expires: Int64
  /// The services called by the script.
  package var services: [String]
  /// The script. It declares a function `patch(input, call)`.
  package var script: String

  package init(
    app: String, appVersions: [String], behaviour: String, sequence: Int64, expires: Int64,
    services: [String] = [], script: String
  ) {
    self.app = app
    self.appVersions = appVersions
    self.behaviour = behaviour
    self.sequence = sequence
    self.expires = expires
    self.services = services
    self.script = script
  }

  /// Returns the reason why this is no patch; `nil` if it is one.
  package func fault(limits: PatchDocumentLimits = .standard) -> String? {
    if !PatchName.isValid(app) { return "app: \(PatchName.rule)" }
    if !PatchName.isValid(behaviour) { return "behaviour: \(PatchName.rule)" }
    if appVersions.isEmpty || appVersions.count > limits.appVersions {
      return "a patch applies to 1 to \(limits.appVersions) versions of the app"
    }
    if !appVersions.allSatisfy(PatchName.isValid) { return "appVersions: \(PatchName.rule)" }
    if services.count > limits.services { return "a patch has at most \(limits.services) services" }
    if !services.allSatisfy(PatchName.isValid) { return "services: \(PatchName.rule)" }
    if !(1...Limits.sequenceMax ~= sequence) { return "sequence is a number from 1 to 2^62" }
    if !(1...Limits.wallTimeMax ~= expires) { return "expires is no time" }
    if script.isEmpty { return "the script is empty" }
    if script.utf8.count > limits.scriptBytes {
      return "the script has \(script.utf8.count) bytes; \(limits.scriptBytes) are allowed"
    }
    return nil
  }
}

/// The limits of patches.
package struct PatchDocumentLimits: Sendable, Equatable {
  /// Bytes of a script.
  package var scriptBytes = 128 << 10
  /// Versions of the app for one patch.
  package var appVersions = 32
  /// Services called by a patch.
  package var services = 32
  /// Bytes of a signed patch, with room for the script's escapes and base64.
  package var documentBytes = 1 << 20

  package init() {}

  package static let standard = PatchDocumentLimits()
}

/// Names in patches: of apps, their versions, behaviours and services.
package enum PatchName {
  package static let rule =
    "a name has 1 to 128 characters of A–Z a–z 0–9 . _ + -, the first a letter or digit"

  package static func isValid(_ name: String) -> Bool {
    let bytes = name.utf8
    guard 1...128 ~= bytes.count, let first = bytes.first, isAlphanumeric(first) else {
      return false
    }
    return bytes.allSatisfy {
      isAlphanumeric($0) || $0 == 0x2E || $0 == 0x5F || $0 == 0x2B || $0 == 0x2D
    }
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    0x30...0x39 ~= byte || 0x41...0x5A ~= byte || 0x61...0x7A ~= byte
  }
}
