import FerryNetworking
import FerryTestSupport
import Testing

@testable import FerryMissions

@Suite("The validator of a version", .hangLimit)
struct TransferValidatorTests {
  @Test("a strong entity tag is a validator")
  func strongTag() {
    #expect(TransferValidator(["ETag": "\"a-1\""])?.text == "\"a-1\"")
    #expect(TransferValidator(["ETag": "\"\""])?.text == "\"\"")
  }

  @Test(
    "a weak or malformed tag is not a validator",
    arguments: ["W/\"a\"", "w/\"a\"", "a", "\"a", "\"", "", "\"a\"b\"", "\"a b\"", "\"a\", \"b\""])
  func otherTags(_ tag: String) {
    #expect(TransferValidator(["ETag": tag]) == nil)
  }

  @Test("a date of change is a validator only if the answer came at least a minute later")
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

  @Test("a validator is confirmed only by the same validator")
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
