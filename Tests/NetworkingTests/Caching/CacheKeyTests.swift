import FerryNetworking
import FerryTestSupport
import Testing

@testable import FerryCaching

@Suite("Cache keys", .hangLimit)
struct CacheKeyTests {
  private func key(
    _ query: [QueryItem], endpoint: String = "http://host/shops",
    headers: TransportHeaders = [:], partition: CachePartition = .credentials
  ) -> CacheKey {
    CacheKey(
      CacheableRequest(endpoint: endpoint, query: query, headers: headers), partition: partition)
  }

  @Test("keys distinguish pages and coordinates, in any order of the parameters")
  func parameters() {
    let page = [QueryItem("page", "2"), QueryItem("lat", "31.2"), QueryItem("lon", "121.5")]
    #expect(key(page) == key(page.reversed()))
    #expect(key(page) != key([QueryItem("page", "3")] + page.dropFirst()))
    #expect(key(page) != key(page.dropLast() + [QueryItem("lon", "121.6")]))
    #expect(key(page) != key(Array(page.dropFirst())))
    #expect(key([QueryItem("a", "b&c=d")]) != key([QueryItem("a", "b"), QueryItem("c", "d")]))
    // Of one name the order may mean something.
    let tags = [QueryItem("tag", "x"), QueryItem("tag", "y")]
    #expect(key(tags) != key(tags.reversed()))
  }

  @Test("keys ignore parameters that are declared not to identify")
  func unidentifying() {
    let trace = QueryItem("trace", "1", identifies: false)
    let other = QueryItem("trace", "2", identifies: false)
    #expect(key([QueryItem("page", "2"), trace]) == key([other, QueryItem("page", "2")]))
    #expect(key([QueryItem("trace", "1")]) != key([QueryItem("trace", "2")]))
  }

  @Test("keys distinguish endpoints, but not spellings of one endpoint")
  func endpoints() {
    #expect(key([]) == key([], endpoint: "HTTP://HOST:80/shops#x"))
    #expect(key([]) != key([], endpoint: "https://host/shops"))
    #expect(key([]) != key([], endpoint: "http://host/Shops"))
  }

  @Test("keys distinguish users, by name or by their credentials")
  func partitions() {
    let ada: TransportHeaders = ["Authorization": "Bearer a"]
    let ben: TransportHeaders = ["Authorization": "Bearer b"]
    #expect(key([], headers: ada) != key([], headers: ben))
    #expect(key([], headers: ada) != key([]))
    #expect(key([], headers: ada) == key([], headers: ada))
    #expect(key([], headers: ["Cookie": "a"]) != key([], headers: ["Cookie": "b"]))
    // A named user may renew the token.
    let named = CachePartition.named("ada")
    #expect(key([], headers: ada, partition: named) == key([], headers: ben, partition: named))
    #expect(key([], partition: named) != key([], partition: .named("ben")))
    #expect(key([], partition: .named("")) != key([]))
    #expect(!key([], headers: ada).partition.contains("Bearer"))
  }

  @Test(
    "a key has one form for each address",
    arguments: [
      ("http://Host", "http://host/"), ("HTTPS://h:443/a", "https://h/a"),
      ("http://h:/a", "http://h/a"), ("http://h:8080/a#b", "http://h:8080/a"),
      ("http://h?x", "http://h/?x"), ("http://h/a%2cb", "http://h/a%2Cb"),
      ("http://h/a,b", "http://h/a%2Cb"), ("http://h/%7ea", "http://h/~a"),
      ("http://h/a%2Fb", "http://h/a%2Fb"), ("http://h/?a=b%26c&d", "http://h/?a=b%26c&d"),
      ("http://h/?a=/?", "http://h/?a=%2F%3F"), ("http://h/é", "http://h/%C3%A9"),
      ("http://h/100%", "http://h/100%25"), ("http://h/%+1", "http://h/%25%2B1"),
      ("http://u:P@H/", "http://u:P@h/"), ("/a b", "/a%20b"), ("http://[::1]:80/", "http://[::1]/"),
      ("http://h/%-0", "http://h/%25-0"), ("http://h/%0g%g0", "http://h/%250g%25g0"),
      // To Swift a delimiter and a combining mark behind it are one character, to HTTP two.
      ("http://h/a#\u{301}b", "http://h/a"), ("http://h/\u{301}a", "http://h/%CC%81a"),
      ("http://H?\u{301}a=1", "http://h/?%CC%81a=1"), ("http://u@\u{301}H/", "http://u@\u{301}h/"),
      ("http://H:80/\u{301}", "http://h/%CC%81"), ("http://\u{301}H/a", "http://\u{301}h/a"),
    ])
  func canonical(url: String, expected: String) {
    #expect(ContentAddress.canonical(url) == expected)
    #expect(ContentAddress.canonical(expected) == expected)
  }

  @Test("a key contains the address that is sent")
  func address() {
    let request = CacheableRequest(
      endpoint: "http://host/a", query: [QueryItem("b c", "d&e"), QueryItem("f", "")])
    #expect(request.address == "http://host/a?b%20c=d%26e&f=")
    let more = CacheableRequest(endpoint: "http://host/a?x", query: [QueryItem("y", "1")])
    #expect(more.address == "http://host/a?x&y=1")
  }
}
