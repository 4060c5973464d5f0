import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryPatches

/// The memory of patches.
@Suite("The ledger of patches", .hangLimit)
struct PatchLedgerTests {
  private let digest: ContentHash

  init() throws {
    digest = try #require(ContentHash(SHA256.digest(of: "a patch")))
  }

  private var ledger: PatchLedger {
    var ledger = PatchLedger()
    ledger.accept("double", sequence: 5, digest: digest)
    return ledger
  }

  private func fail(_ ledger: inout PatchLedger) -> Bool {
    ledger.recordFailure("double", sequence: 5, limit: 3)
  }

  private func succeed(_ ledger: inout PatchLedger) -> Bool {
    ledger.recordSuccess("double", sequence: 5)
  }

  @Test("three failures in a row disable a patch, and a success between them does not")
  func disabled() {
    var ledger = ledger
    for round in 1...2 {
      #expect(fail(&ledger))
      #expect(ledger.entries["double"]?.failuresInARow == round)
    }
    #expect(succeed(&ledger))
    #expect(!succeed(&ledger))
    for _ in 1...3 { #expect(fail(&ledger)) }
    #expect(ledger.entries["double"]?.isDisabled == true)
    // A call begun earlier still ends.
    #expect(!succeed(&ledger))
    #expect(!fail(&ledger))
    let isEnabled = ledger.enable("double")
    #expect(isEnabled)
    #expect(ledger.entries["double"]?.isDisabled == false)
  }

  @Test("a newer patch begins without failures, and results of the older one do not count for it")
  func newer() {
    var ledger = ledger
    for _ in 1...3 { _ = ledger.recordFailure("double", sequence: 5, limit: 3) }
    ledger.accept("double", sequence: 4, digest: digest)
    #expect(ledger.entries["double"]?.isDisabled == true)
    ledger.accept("double", sequence: 6, digest: digest)
    #expect(ledger.entries["double"]?.isDisabled == false)
    #expect(!fail(&ledger))
    #expect(ledger.entries["double"]?.failuresInARow == 0)
    let isKnown = ledger.recordFailure("unknown", sequence: 5, limit: 3)
    #expect(!isKnown)
  }

  @Test("a ledger is read as it was written, and a damaged one is refused")
  func coding() throws {
    var ledger = ledger
    ledger.accept("half", sequence: Limits.sequenceMax, digest: digest)
    _ = ledger.recordFailure("half", sequence: Limits.sequenceMax, limit: 1)
    let bytes = ledger.encoded()
    #expect(try PatchLedger(decoding: bytes) == ledger)
    let text = String(decoding: bytes, as: UTF8.self)
    for (from, to) in [
      (#""format":1"#, #""format":2"#), (#""half""#, #""double""#), ("\(digest)", "abc"),
      (#""sequence":5"#, #""sequence":-5"#), (#""failures":0"#, #""failures":-1"#), ("}]}", "}]"),
    ] {
      let changed = text.replacing(from, with: to)
      #expect(changed != text, "\(from)")
      #expect(throws: MalformedMessage.self, "\(to)") {
        try PatchLedger(decoding: Array(changed.utf8))
      }
    }
  }
}
