# Installation and export: see the tools and CI
