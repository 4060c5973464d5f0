import Networking
import TestSupport
import Testing

@testable import Missions

@Suite("A version's mark", .hangLimit)
struct TransferValidatorTests {
  @Test("is a strong entity tag")
  func strongTag() {
    #expect(TransferValidator(["ETag": "\"a-1\""])?.text == "\"a-1\"")
    #expect(TransferValidator(["ETag": "\"\""])?.text == "\"\"")
  }

  @Test(
    "is never a weak or malformed tag",
    arguments: ["W/\"a\"", "w/\"a\"", "a", "\"a", "\"", "", "\"a\"b\"", "\"a b\"", "\"a\", \"b\""])
  func otherTags(_ tag: String) {
    #expect(TransferValidator(["ETag": tag]) == nil)
  }

  @Test("is a date of change only where the answer came a minute later or more")
  func dates() {
    let changed = "Sun, 06 Nov 1994 08:49:37 GMT"
    func validator(_ sent: String) -> TransferValidator? {
      TransferValidator(["Last-Modified": changed, "Date": sent])
    }
    #expect(validator("Sun, 06 Nov 1994 08:50:37 GMT")?.text == changed)
    #expect(validator("Sun, 06 Nov 1994 08:50:36 GMT") == nil)
    #expect(validator("yesterday") == nil)
    #expect(TransferValidator(["Last-Modified": changed]) == nil)
  }

  @Test("is confirmed by the same mark only")
  func confirmation() {
    let tag = TransferValidator(kept: "\"a\"")
    #expect(tag.isConfirmed(by: ["ETag": "\"a\""]))
    #expect(!tag.isConfirmed(by: ["ETag": "W/\"a\""]))
    #expect(!tag.isConfirmed(by: ["ETag": "\"b\""]))
    #expect(!tag.isConfirmed(by: [:]))
    let date = TransferValidator(kept: "Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(date.isConfirmed(by: ["Last-Modified": date.text]))
    #expect(!date.isConfirmed(by: ["ETag": date.text]))
  }
}
