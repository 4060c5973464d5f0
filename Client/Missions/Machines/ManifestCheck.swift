import FerryCryptography
import FerryProtocol
import Foundation

/// Checks that a manifest is the record's, and signed by a trusted signer (SPEC.md §21).
enum ManifestCheck {
  /// Rejects an untrusted signer before any download. While no signer is trusted, every signer is
  /// accepted.
  static func check(signer: [UInt8], trusted: [[UInt8]]) throws(MissionError) {
    guard trusted.isEmpty || trusted.contains(signer) else {
      throw MissionError(
        .untrustedSigner,
        "it is signed by the key \(base64(signer)), but this device trusts "
          + "\(trusted.map(base64).joined(separator: ", "))")
    }
  }

  /// Reads a manifest's document after all possible checks.
  ///
  /// - Parameter isSigned: false for a manifest made on this device.
  static func manifest(
    _ document: [UInt8], of record: MissionRecord, in space: SpaceName, isSigned: Bool = true
  ) throws(MissionError) -> MissionManifest {
    guard ContentHash(SHA256.digest(of: document)) == record.manifest else {
      throw MissionError(.badManifest, "the manifest does not match the catalogue's hash")
    }
    if isSigned { try checkSignature(of: document, record) }
    let manifest: MissionManifest
    do {
      manifest = try MissionManifest(decoding: document)
    } catch {
      throw MissionError(.badManifest, "the manifest cannot be read: \(error)")
    }
    // A signed manifest of another mission, space or version is genuine, but in the wrong place.
    guard manifest.id == record.id, manifest.version == record.version, manifest.space == space
    else {
      throw MissionError(
        .badManifest,
        "the manifest belongs to mission \(manifest.id), version \(manifest.version), of space "
          + "\(manifest.space)")
    }
    // The catalogue is not signed: it states the mission's size for display, and for the reserved
    // space on the disk.
    guard manifest.size == record.size, Int64(manifest.items.count) == record.items else {
      throw MissionError(
        .badManifest,
        "the catalogue lists \(record.items) items and \(record.size) bytes, but the manifest "
          + "lists \(manifest.items.count) and \(manifest.size)")
    }
    return manifest
  }

  private static func checkSignature(
    of document: [UInt8], _ record: MissionRecord
  ) throws(MissionError) {
    guard let signer = try? Ed25519.PublicKey(record.signer),
      signer.isValid(record.signature, for: MissionManifest.signedMessage(document))
    else {
      throw MissionError(
        .badSignature, "the manifest's signature is not valid for \(base64(record.signer))")
    }
  }

  /// Returns a key in the form of `ferryd mission key` and `ferry mission trust`.
  static func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }
}
