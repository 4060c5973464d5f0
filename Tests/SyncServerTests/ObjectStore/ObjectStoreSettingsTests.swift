import FerryTestSupport
import Testing

@testable import FerryMissionServer

@Suite("The place of content in an object store", .hangLimit)
struct ObjectStoreSettingsTests {
  @Test("a bucket with its prefix and its endpoint are read")
  func reads() throws {
    let amazon = try ObjectStoreSettings("s3://my.bucket", endpoint: nil, region: "eu-west-1")
    #expect(amazon.endpoint == "https://s3.eu-west-1.amazonaws.com")
    #expect(amazon.host == "s3.eu-west-1.amazonaws.com" && amazon.prefix == "")
    let own = try ObjectStoreSettings(
      "s3://bucket/a//b/", endpoint: "http://[::1]:9000/", region: "r")
    #expect(own.bucket == "bucket" && own.prefix == "a/b/" && own.host == "[::1]:9000")
    let port = try ObjectStoreSettings("s3://bucket", endpoint: "https://s3.test:443", region: "r")
    #expect(port.host == "s3.test")
  }

  @Test(
    "other places are refused with the reason",
    arguments: [
      ("bucket", nil), ("s3://", nil), ("s3://ab", nil), ("s3://Bucket", nil),
      ("s3://bucket/../other", nil), ("s3://bucket/a b", nil), ("s3://bucket/ü", nil),
      ("s3://bucket", "s3.test"), ("s3://bucket", "ftp://s3.test"),
      ("s3://bucket", "https://s3.test/path"), ("s3://bucket", "https://user:secret@s3.test"),
      ("s3://bucket", "https://s3.test/path:443"), ("s3://bucket", "https://s3.test?a=b"),
    ] as [(String, String?)])
  func refuses(_ url: String, _ endpoint: String?) {
    #expect(throws: ObjectStoreError.self) {
      try ObjectStoreSettings(url, endpoint: endpoint, region: "us-east-1")
    }
  }

  @Test("a region of other characters is refused")
  func region() {
    for region in ["", "a b", "a/b"] {
      #expect(throws: ObjectStoreError.self) {
        try ObjectStoreSettings("s3://bucket", endpoint: nil, region: region)
      }
    }
  }

  @Test("answers are read, and malformed ones are rejected")
  func answers() throws {
    let text = """
      <?xml version="1.0"?>
      <!-- a list -->
      <a:List xmlns:a="x"><Key>1 &lt;&amp;&#x20AC;&#65;</Key><Empty/><Key>2</Key></a:List>
      """
    let list = try #require(ObjectStoreXML(Array(text.utf8)))
    #expect(list.name == "List" && list.children.count == 3)
    #expect(list.text(of: "Key") == "1 <&€A" && list.text(of: "Empty") == "")
    let deep = String(repeating: "<a>", count: 40) + String(repeating: "</a>", count: 40)
    for wrong in ["", "text", "<a>", "<a></b>", "<a>&x;</a>", "<!DOCTYPE a><a/>", deep, "<a"] {
      #expect(ObjectStoreXML(Array(wrong.utf8)) == nil, "\(wrong)")
    }
    #expect(ObjectStoreClient.seconds("2013-05-24T00:00:00.000Z") == 1_369_353_600)
    #expect(ObjectStoreClient.seconds("yesterday") == nil)
  }
}
