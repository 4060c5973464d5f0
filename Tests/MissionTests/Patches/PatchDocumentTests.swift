import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Testing

/// The document of a patch, and the document's signature.
@Suite("The document of a patch", .hangLimit)
struct PatchDocumentTests {
  private func decode(_ text: String) throws(MalformedMessage) -> PatchDocument {
    try PatchDocument(decoding: Array(text.utf8))
  }

  private static let golden =
    #"{"format":1,"app":"org.example.shop","appVersions":["2.2.9","2.3.0"],"#
    + #""behaviour":"double","sequence":5,"expires":1800000001000,"services":["a.b"],"#
    + #""script":"function patch(i) { return \"\\u00e9\\n\" }"}"#

  @Test("a patch is written in one form, and read from it")
  func golden() throws {
    let document = PatchFixture.document(
      #"function patch(i) { return "\u00e9\n" }"#, services: ["a.b"])
    #expect(String(decoding: document.encoded(), as: UTF8.self) == Self.golden)
    #expect(try decode(Self.golden) == document)
  }

  @Test("a document with an unknown, a repeated or a missing member is refused")
  func members() {
    let golden = Self.golden
    for (from, to) in [
      (#""format":1"#, #""format":2"#), (#""format":1,"#, ""), (#""sequence":5,"#, ""),
      (#""sequence":5"#, #""sequence":5,"onlyFor":"testers""#),
      (#""sequence":5"#, #""sequence":5,"sequence":6"#),
      (#""sequence":5,"expires":1800000001000"#, #""sequence":5,"sequence":6"#),
      (#""sequence":5"#, #""sequence":0"#), (#""sequence":5"#, #""sequence":5.5"#),
      (#"["a.b"]"#, #"[["a.b"]]"#), (#""double""#, #""two words""#), (#""double""#, #""""#),
      (#"["2.2.9","2.3.0"]"#, "[]"), (#""function patch(i) { return \"\\u00e9\\n\" }""#, #""""#),
    ] {
      let changed = golden.replacing(from, with: to, maxReplacements: 1)
      #expect(changed != golden, "\(from)")
      #expect(throws: MalformedMessage.self, "\(to)") { try decode(changed) }
    }
    #expect(throws: MalformedMessage.self) { try decode(golden + "{}") }
  }

  @Test("a document beyond a limit is refused")
  func limits() {
    let limits = PatchDocumentLimits.standard
    var document = PatchFixture.document()
    document.script = String(repeating: "x", count: limits.scriptBytes)
    #expect(document.fault() == nil)
    document.script += "x"
    #expect(document.fault()?.contains("131073 bytes") == true)
    document = PatchFixture.document()
    document.services = (0...limits.services).map { "s\($0)" }
    #expect(throws: MalformedMessage.self) { try PatchDocument(decoding: document.encoded()) }
    document = PatchFixture.document()
    document.appVersions = (0...limits.appVersions).map { "1.\($0)" }
    #expect(throws: MalformedMessage.self) { try PatchDocument(decoding: document.encoded()) }
    let long = [UInt8](repeating: 0x20, count: limits.documentBytes + 1)
    #expect(throws: MalformedMessage.self) { try PatchDocument(decoding: long) }
  }

  @Test("a signature holds for its key, its type and every byte, and for nothing else")
  func signature() throws {
    let document = PatchFixture.document()
    let bytes = PatchFixture.signed(document)
    let signed = try #require(SignedDocument(bytes))
    let key = PatchFixture.key.publicKey
    #expect(signed.isSigned(by: key, type: "ferry-patch"))
    #expect(signed.payload == document.encoded())
    #expect(!signed.isSigned(by: PatchFixture.otherKey.publicKey, type: "ferry-patch"))
    #expect(!signed.isSigned(by: key, type: "ferry-bundle"))
    for place in bytes.indices {
      var changed = bytes
      changed[place] = changed[place] == 0x41 ? 0x42 : 0x41
      let isSigned = SignedDocument(changed)?.isSigned(by: key, type: "ferry-patch") ?? false
      #expect(!isSigned, "byte \(place)")
    }
  }

  @Test("a document that chooses another algorithm, or none, is not signed")
  func algorithm() throws {
    let payload = Base64URL.encode(PatchFixture.document().encoded())
    for header in [
      #"{"alg":"none","typ":"ferry-patch"}"#, #"{"typ":"ferry-patch","alg":"EdDSA"}"#,
      #"{"alg":"HS256","typ":"ferry-patch"}"#, #"{"alg":"EdDSA","typ":"ferry-patch","kid":"x"}"#,
    ] {
      let message = Base64URL.encode(Array(header.utf8)) + "." + payload
      let signature = PatchFixture.key.sign(Array(message.utf8))
      let text = message + "." + Base64URL.encode(signature)
      let signed = try #require(SignedDocument(Array(text.utf8)))
      #expect(!signed.isSigned(by: PatchFixture.key.publicKey, type: "ferry-patch"), "\(header)")
    }
    for text in ["", ".", "..", "a.b", "a.b.c.d", "e30.e30.=", "e30.e30.e30\n"] {
      let signed = SignedDocument(Array(text.utf8))
      let isSigned = signed?.isSigned(by: PatchFixture.key.publicKey, type: "ferry-patch")
      #expect(isSigned != true, "\(text)")
    }
  }
}
