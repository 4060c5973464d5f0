import FerryTestSupport
import Testing

@testable import FerryNetworking

@Suite("The token of a session", .hangLimit)
struct TokenStateTests {
  @Test("the first request fetches a token, and later ones use it")
  func first() {
    var state = TokenState()
    #expect(state.beforeSending == .fetch(rejected: nil))
    #expect(state.beginFetch(rejected: nil) == .fetch(rejected: nil))
    state.fetched("a", insteadOf: nil, in: 0)
    #expect(state.beforeSending == .use("a"))
  }

  @Test("a session without a token goes on without one, and never asks again")
  func none() {
    var state = TokenState()
    state.fetched(nil, insteadOf: nil, in: 0)
    #expect(state.beforeSending == .use(nil))
    #expect(state.afterRejection(of: nil) == .giveUp)
  }

  @Test("while a token is replaced, requests wait for the other one, whatever they were sent with")
  func replacing() {
    var state = TokenState()
    state.set("a")
    #expect(state.beginFetch(rejected: "a") == .fetch(rejected: "a"))
    #expect(state.beforeSending == .fetch(rejected: "a"))
    #expect(state.afterRejection(of: "older") == .fetch(rejected: "a"))
    state.fetched("b", insteadOf: "a", in: state.session)
    #expect(state.beforeSending == .use("b"))
  }

  @Test("a rejection that comes after the refresh takes the new token, without another refresh")
  func late() {
    var state = TokenState()
    state.set("a")
    state.fetched("b", insteadOf: "a", in: state.session)
    #expect(state.afterRejection(of: "a") == .use("b"))
    #expect(state.beginFetch(rejected: "a") == .use("b"))
    #expect(state.afterRejection(of: "b") == .fetch(rejected: "b"))
  }

  @Test("a token that has no successor is not refreshed again", arguments: [nil, "a"])
  func refused(answer: String?) {
    var state = TokenState()
    state.set("a")
    state.fetched(answer, insteadOf: "a", in: state.session)
    #expect(state.afterRejection(of: "a") == .giveUp)
    state.set("c")
    #expect(state.beforeSending == .use("c"))
    #expect(state.afterRejection(of: "c") == .fetch(rejected: "c"))
  }

  @Test("a fetch that failed lets the next rejection begin another one")
  func failed() {
    var state = TokenState()
    state.set("a")
    _ = state.beginFetch(rejected: "a")
    state.failed(in: state.session)
    #expect(state.beforeSending == .use("a"))
    #expect(state.afterRejection(of: "a") == .fetch(rejected: "a"))
  }

  @Test("a fetch of a former session changes nothing")
  func formerSession() {
    var state = TokenState()
    state.set("a")
    let former = state.session
    _ = state.beginFetch(rejected: "a")
    state.set(nil)
    state.fetched("b", insteadOf: "a", in: former)
    #expect(state.beforeSending == .use(nil))
  }
}
