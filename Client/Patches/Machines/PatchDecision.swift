import FerryCryptography
import FerryProtocol

/// The reason why an app does not use a patch.
public enum PatchRefusal: Sendable, Equatable, CustomStringConvertible {
  /// It is no signed patch, or this version cannot read it.
  case malformed(String)
  /// No trusted key signed it, or it was changed afterwards.
  case untrusted
  /// It is for another app.
  case otherApp(String)
  /// It is for other releases of this app.
  case otherVersion([String])
  /// The patch's time is over.
  case expired
  /// The app has no behaviour of this name.
  case unknownBehaviour(String)
  /// The patch needs a service not granted by the app to this behaviour.
  case serviceNotGranted(String)
  /// The app had a newer patch of this behaviour, or another one with the same sequence.
  case downgrade(newest: Int64)
  /// Another patch of the same delivery is newer.
  case superseded(by: Int64)
  /// The file cannot be read.
  case unreadable(String)

  public var description: String {
    switch self {
    case .malformed(let reason): "it is no patch: \(reason)"
    case .untrusted: "no key that the app trusts signed it, or it was changed"
    case .otherApp(let app): "it is for the app \(app)"
    case .otherVersion(let versions):
      "it is for the app's version \(versions.joined(separator: ", "))"
    case .expired: "it has expired"
    case .unknownBehaviour(let name): "the app has no behaviour \(name)"
    case .serviceNotGranted(let name): "the app does not grant it the service \(name)"
    case .downgrade(let newest): "the app already had the patch with sequence \(newest)"
    case .superseded(let newest): "the patch with sequence \(newest) is newer"
    case .unreadable(let reason): "the file cannot be read: \(reason)"
    }
  }
}

/// Decides which patches an app uses; pure (SPEC.md §34).
struct PatchDecision: Sendable {
  /// The accepted and the rejected patches, by their places in the delivery.
  struct Outcome: Sendable, Equatable {
    var accepted: [Int: AcceptedPatch] = [:]
    var refused: [Int: PatchRefusal] = [:]
  }

  let app: String
  let version: String
  let keys: [Ed25519.PublicKey]
  /// The services granted by the app to each behaviour.
  let grants: [String: Set<String>]
  /// Milliseconds since 1970.
  let now: Int64

  /// Decides about all patches of a delivery at once.
  func decide(_ documents: [[UInt8]], _ ledger: PatchLedger) -> Outcome {
    var outcome = Outcome()
    for (place, bytes) in documents.enumerated() {
      switch judge(bytes, ledger) {
      case .success(let patch): outcome.accepted[place] = patch
      case .failure(let refusal): outcome.refused[place] = refusal.refusal
      }
    }
    for (place, patch) in outcome.accepted {
      // Of two with one sequence the first one counts; the ledger then knows it.
      let rivals = outcome.accepted.filter { $0.value.behaviour == patch.behaviour }
      let best = rivals.max {
        ($0.value.sequence, -$0.key) < ($1.value.sequence, -$1.key)
      }
      if let best, best.key != place {
        outcome.refused[place] = .superseded(by: best.value.sequence)
      }
    }
    for place in outcome.refused.keys { outcome.accepted[place] = nil }
    return outcome
  }

  private struct Refused: Error {
    let refusal: PatchRefusal
  }

  private func judge(
    _ bytes: [UInt8], _ ledger: PatchLedger
  ) -> Result<AcceptedPatch, Refused> {
    do throws(Refused) {
      let patch = try verified(bytes)
      try check(patch.document)
      if let known = ledger.entries[patch.behaviour] {
        let isSame = known.sequence == patch.sequence && known.digest == patch.digest
        guard patch.sequence > known.sequence || isSame else {
          throw Refused(refusal: .downgrade(newest: known.sequence))
        }
      }
      return .success(patch)
    } catch {
      return .failure(error)
    }
  }

  /// Verifies a document. The signature comes first: nothing else is looked at before.
  private func verified(_ bytes: [UInt8]) throws(Refused) -> AcceptedPatch {
    guard bytes.count <= PatchDocumentLimits.standard.documentBytes else {
      throw Refused(refusal: .malformed("it has \(bytes.count) bytes"))
    }
    let text = bytes.last == 0x0A ? Array(bytes.dropLast()) : bytes
    guard let signed = SignedDocument(text) else {
      throw Refused(refusal: .malformed("it has no signature in compact form"))
    }
    let type = PatchDocument.signatureType
    guard keys.contains(where: { signed.isSigned(by: $0, type: type) }) else {
      throw Refused(refusal: .untrusted)
    }
    guard let digest = ContentHash(SHA256.digest(of: signed.payload)) else {
      preconditionFailure("a SHA-256 has 32 bytes")
    }
    do throws(MalformedMessage) {
      return AcceptedPatch(document: try PatchDocument(decoding: signed.payload), digest: digest)
    } catch {
      throw Refused(refusal: .malformed(error.description))
    }
  }

  private func check(_ document: PatchDocument) throws(Refused) {
    guard document.app == app else { throw Refused(refusal: .otherApp(document.app)) }
    guard document.appVersions.contains(version) else {
      throw Refused(refusal: .otherVersion(document.appVersions))
    }
    guard document.expires > now else { throw Refused(refusal: .expired) }
    guard let granted = grants[document.behaviour] else {
      throw Refused(refusal: .unknownBehaviour(document.behaviour))
    }
    if let service = document.services.first(where: { !granted.contains($0) }) {
      throw Refused(refusal: .serviceNotGranted(service))
    }
  }
}

/// A patch with a valid signature that fulfils the rules.
struct AcceptedPatch: Sendable, Equatable {
  let document: PatchDocument
  /// Of the document's bytes.
  let digest: ContentHash

  var behaviour: String { document.behaviour }
  var sequence: Int64 { document.sequence }
}
