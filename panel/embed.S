// The panel's files as bytes in the program; src/belfry/server/panel.cpp names them.
#define FILE(name, path) \
  .global name; .global name##_end; name: .incbin path; name##_end:; .byte 0

  .section .rodata
  FILE(belfry_panel_html, "index.html")
  FILE(belfry_panel_html_gz, "index.html.gz")
  FILE(belfry_panel_js, "panel.js")
  FILE(belfry_panel_js_gz, "panel.js.gz")
  FILE(belfry_panel_css, "panel.css")
  FILE(belfry_panel_css_gz, "panel.css.gz")
  .section .note.GNU-stack, "", @progbits
