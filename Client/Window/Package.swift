// swift-tools-version: 6.2
// A window for `ferry shell --window`. It is a separate package: Ferry itself needs no WebKitGTK.
import PackageDescription

let package = Package(
  name: "ferry-window",
  products: [.executable(name: "ferry-window", targets: ["ferry-window"])],
  targets: [
    .systemLibrary(
      name: "CWebKitGTK", path: "Sources/CWebKitGTK", pkgConfig: "webkit2gtk-4.1",
      providers: [.apt(["libwebkit2gtk-4.1-dev"])]),
    .executableTarget(
      name: "ferry-window", dependencies: ["CWebKitGTK"], path: "Sources/ferry-window",
      cSettings: [.unsafeFlags(["-Wall", "-Wextra", "-Werror"])]),
  ]
)
