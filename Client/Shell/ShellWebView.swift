import FerryPlatform

#if canImport(WebKit)
  import Foundation
  import WebKit

  /// A web view for the pages of a shell on macOS and iOS. It keeps nothing on the disk, and loads
  /// nothing but the shell's own pages. No test has compiled it.
  ///
  /// Keep the value as long as the view: the view does not. The pages come from 127.0.0.1:
  ///
  /// - The app's Info.plist needs `NSAllowsLocalNetworking` in `NSAppTransportSecurity`.
  /// - A sandboxed app of macOS needs the entitlements `com.apple.security.network.client` and
  ///   `com.apple.security.network.server`.
  /// - iOS ends the sockets of a suspended app (TN2277). The shell then listens again; call
  ///   ``load()`` when the app returns to the foreground.
  ///
  /// ```swift
  /// page = ShellWebView(shell)
  /// window.contentView = page.view
  /// ```
  @MainActor
  public final class ShellWebView: NSObject, WKNavigationDelegate {
    /// The view; add it to a window or a view of the app.
    public let view: WKWebView
    private let shell: Shell
    private let origin: String

    /// Creates a view, and loads the page.
    public init(_ shell: Shell) {
      self.shell = shell
      origin = "http://127.0.0.1:\(shell.port)/"
      let configuration = WKWebViewConfiguration()
      configuration.websiteDataStore = .nonPersistent()
      view = WKWebView(frame: .zero, configuration: configuration)
      super.init()
      view.navigationDelegate = self
      load()
    }

    /// Loads the page by a new address.
    public func load() {
      guard let url = URL(string: shell.makeAddress()) else { return }
      view.load(URLRequest(url: url))
    }

    /// Allows the shell's own addresses only.
    public func webView(
      _ webView: WKWebView, decidePolicyFor action: WKNavigationAction
    ) async -> WKNavigationActionPolicy {
      action.request.url?.absoluteString.begins(with: origin) == true ? .allow : .cancel
    }

    /// Reports a page after the end of its process, and loads the last good version.
    public func webViewWebContentProcessDidTerminate(_ webView: WKWebView) {
      Task {
        await shell.reportCrash("its process ended")
        load()
      }
    }
  }
#endif
