import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryPatches

/// Which patches an app uses.
@Suite("The decision about a patch", .hangLimit)
struct PatchDecisionTests {
  private func decision(
    version: String = PatchFixture.version, app: String = PatchFixture.app,
    now: Int64 = PatchFixture.now
  ) -> PatchDecision {
    PatchDecision(
      app: app, version: version, keys: [PatchFixture.key.publicKey],
      grants: ["double": ["clock"], "half": []], now: now)
  }

  private func refusal(
    of bytes: [UInt8], _ ledger: PatchLedger = PatchLedger(), _ decision: PatchDecision? = nil
  ) -> PatchRefusal? {
    let outcome = (decision ?? self.decision()).decide([bytes], ledger)
    #expect(outcome.accepted.count + outcome.refused.count == 1)
    return outcome.refused[0]
  }

  private func digest(_ document: PatchDocument) throws -> ContentHash {
    try #require(ContentHash(SHA256.digest(of: document.encoded())))
  }

  @Test("a patch for this app, release and behaviour is accepted until it expires")
  func accepted() {
    let patch = PatchFixture.signed(PatchFixture.document(services: ["clock"]))
    #expect(refusal(of: patch) == nil)
    #expect(refusal(of: patch + [0x0A]) == nil)
    let last = decision(now: PatchFixture.now + 999)
    #expect(refusal(of: patch, PatchLedger(), last) == nil)
    let late = decision(now: PatchFixture.now + 1_000)
    #expect(refusal(of: patch, PatchLedger(), late) == .expired)
  }

  @Test("a patch that another key signed, or that was changed, is refused")
  func untrusted() {
    let document = PatchFixture.document()
    #expect(refusal(of: PatchFixture.signed(document, by: PatchFixture.otherKey)) == .untrusted)
    #expect(refusal(of: PatchFixture.signed(document, type: "ferry-bundle")) == .untrusted)
    // The signature of one patch under the content of another one.
    let parts = { (bytes: [UInt8]) in bytes.split(separator: UInt8(ascii: ".")).map(Array.init) }
    let honest = parts(PatchFixture.signed(document))
    let evil = parts(
      PatchFixture.signed(PatchFixture.document("function patch() { return 666 }")))
    let forged = honest[0] + [0x2E] + evil[1] + [0x2E] + honest[2]
    #expect(refusal(of: forged) == .untrusted)
    for text in ["", "hello", "{}", "a.b.c"] {
      if case .malformed = refusal(of: Array(text.utf8)) { continue }
      #expect(refusal(of: Array(text.utf8)) == .untrusted, "\(text)")
    }
  }

  @Test("a patch for another app or another release is refused")
  func elsewhere() {
    let patch = PatchFixture.signed(PatchFixture.document())
    let otherApp = decision(app: "org.example.bank")
    #expect(refusal(of: patch, PatchLedger(), otherApp) == .otherApp(PatchFixture.app))
    for version in ["2.3.1", "2.3", "2.3.0 ", "", "2.3.00"] {
      let next = decision(version: version)
      #expect(refusal(of: patch, PatchLedger(), next) == .otherVersion(["2.2.9", "2.3.0"]))
    }
  }

  @Test("a patch of an unknown behaviour, or with a service that is not granted to it, is refused")
  func grants() {
    let unknown = PatchFixture.document(behaviour: "triple")
    #expect(refusal(of: PatchFixture.signed(unknown)) == .unknownBehaviour("triple"))
    let foreign = PatchFixture.document(services: ["clock", "files.delete"])
    #expect(refusal(of: PatchFixture.signed(foreign)) == .serviceNotGranted("files.delete"))
    // Granted to another behaviour only.
    let other = PatchFixture.document(behaviour: "half", services: ["clock"])
    #expect(refusal(of: PatchFixture.signed(other)) == .serviceNotGranted("clock"))
  }

  @Test("an older patch never replaces a newer one, and neither does another with its sequence")
  func downgrade() throws {
    let document = PatchFixture.document(sequence: 5)
    var ledger = PatchLedger()
    ledger.accept("double", sequence: 5, digest: try digest(document))
    #expect(refusal(of: PatchFixture.signed(document), ledger) == nil)
    let older = PatchFixture.signed(PatchFixture.document(sequence: 4))
    #expect(refusal(of: older, ledger) == .downgrade(newest: 5))
    let twin = PatchFixture.signed(PatchFixture.document("function patch() {}", sequence: 5))
    #expect(refusal(of: twin, ledger) == .downgrade(newest: 5))
    let newer = PatchFixture.signed(PatchFixture.document(sequence: 6))
    #expect(refusal(of: newer, ledger) == nil)
    // Sequences of behaviours are separate.
    let other = PatchFixture.document(behaviour: "half", sequence: 1)
    #expect(refusal(of: PatchFixture.signed(other), ledger) == nil)
  }

  @Test("of several patches of one behaviour, the newest counts")
  func superseded() {
    let documents = [2, 9, 4, 9].map { sequence in
      PatchFixture.signed(PatchFixture.document(sequence: sequence))
    }
    let half = PatchFixture.signed(PatchFixture.document(behaviour: "half", sequence: 1))
    let outcome = decision().decide(documents + [half], PatchLedger())
    #expect(outcome.accepted.mapValues(\.sequence) == [1: 9, 4: 1])
    #expect(
      outcome.refused == [
        0: .superseded(by: 9), 2: .superseded(by: 9), 3: .superseded(by: 9),
      ])
  }

  @Test("nothing of a patch is read before its signature holds")
  func signatureFirst() {
    let broken = SignedDocument.sign(
      Array("{".utf8), type: "ferry-patch", with: PatchFixture.otherKey)
    #expect(refusal(of: Array(broken.utf8)) == .untrusted)
    let own = SignedDocument.sign(Array("{".utf8), type: "ferry-patch", with: PatchFixture.key)
    guard case .malformed = refusal(of: Array(own.utf8)) else {
      Issue.record("a broken document was accepted")
      return
    }
  }
}
