import FerryProtocol
import FerrySyncClient
import FerryTestSupport
import Testing

@Suite("Generated identifiers", .hangLimit)
struct GeneratedIdentifierTests {
  @Test("identifiers of one process sort by their creation, also within a millisecond")
  func increasing() {
    let identifiers = (0..<10_000).map { _ in "\(UniqueID.generate())" }
    #expect(zip(identifiers, identifiers.dropFirst()).allSatisfy { $0 < $1 })
  }
}
